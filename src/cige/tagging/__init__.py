"""Reading texts with a tagger: windows become lattices, lattices scored spans, spans the entities of a text."""
