"""The server behind the page: requests, who is answered, and jobs."""
