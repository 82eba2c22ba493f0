"""The loop of one session: prompt, ask, observe, judge."""
