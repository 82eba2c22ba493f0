"""The hook by which the commits of an agent say which issue, agent and session they are of.

It runs where the agent runs git, and never on the host. Where it cannot do its work, the commit is made without it.
"""

SIGNING = "hooks/prepare-commit-msg"
SIGNING_HOOK = """\
#!/bin/sh
# By Genba: a commit says which issue, agent and session it is of.
[ -n "$GENBA_RUN" ] && [ -f "$1" ] || exit 0
plain= last=
[ "$2" = message ] && plain=yes
while IFS= read -r line || [ -n "$line" ]; do
  case "$line" in Issue:* | Agent:* | Session:*) plain= ;; esac
  [ -n "$line" ] && last=$line
done < "$1"
case "$last" in *": "*) plain= ;; esac
if [ -n "$plain" ]; then
  {
    printf '\\n'
    [ -n "$GENBA_ISSUE" ] && printf 'Issue: %s\\n' "$GENBA_ISSUE"
    printf 'Agent: %s\\nSession: %s\\n' "$GENBA_AGENT" "$GENBA_RUN"
  } >> "$1"
else
  git interpret-trailers --in-place --if-exists replace ${GENBA_ISSUE:+--trailer "Issue: $GENBA_ISSUE"} \\
    --trailer "Agent: $GENBA_AGENT" --trailer "Session: $GENBA_RUN" "$1"
fi
exit 0
"""
