"""The console: the answers of the commands as pages for a browser, with the rights of the person who reads them."""
