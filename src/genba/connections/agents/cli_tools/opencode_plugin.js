// Lives inside of OpenCode, which loads it before the first question. `given` stands in front of it.
import { writeSync } from "node:fs"

const PATIENCE_SECONDS = 10
const tell = (what) => {
  try {
    writeSync(1, JSON.stringify({ type: "genba", ...what }) + "\n")
  } catch {}
}

export const Genba = async ({ client }) => {
  for (const name of given.hidden) delete process.env[name]
  let looked = false

  const lookAtServers = async () => {
    if (looked) return
    looked = true
    const states = (await client.mcp.status()).data ?? {}
    const broken = Object.entries(states).filter(([, state]) => !["connected", "disabled"].includes(state.status))
    for (const [name, state] of broken) tell({ server: name, state: state.error ?? state.status })
    if (broken.some(([name]) => given.required.includes(name))) process.exit(70)
  }

  const waitNoLonger = (status) => {
    const seconds = Math.max(0, (status.next - Date.now()) / 1000)
    tell({ retry: status.attempt, message: status.message, seconds })
    if (status.attempt > 1 || seconds > PATIENCE_SECONDS) process.exit(75)
  }

  return {
    event: async ({ event }) => {
      if (event.type !== "session.status") return
      if (event.properties.status.type === "retry") waitNoLonger(event.properties.status)
      else await lookAtServers()
    },
  }
}
