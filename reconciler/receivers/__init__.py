"""The file with the receivers of notifications. Policies name receivers, and notifications go to them."""
