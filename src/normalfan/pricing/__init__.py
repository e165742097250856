"""The price of a crossing, of a whole stream, of a stream as it arrives."""
