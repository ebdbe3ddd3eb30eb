"""Updates: projects whose tracked ref has moved are analysed again."""
