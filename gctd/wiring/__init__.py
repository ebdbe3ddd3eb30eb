"""What control plane and workers share: the broker, policies, credentials, the stream of attempt logs."""
