"""Maps and flows that are iterated, their tangents, sections and starts."""
