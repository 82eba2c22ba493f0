"""Looking for secrets in every commit of a branch. What an agent commits can neither switch it off nor teach it."""
