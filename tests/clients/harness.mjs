// Loads an extension, sends it events as its client does, and prints what came of each as JSON.
//   node harness.mjs pi|opencode EXTENSION < steps.json
import { readFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [client, extension] = process.argv.slice(2)
const { folder, session, file, steps } = JSON.parse(readFileSync(0, "utf8"))
const module = await import(pathToFileURL(extension))
const handlers = client === "pi" ? {} : await module.Om(place())
const told = []

function place() {
  const messages = async () => ({ data: steps.find((step) => step.messages)?.messages ?? [] })
  return { directory: folder, client: { session: { messages } } }
}

if (client === "pi") module.default({ on: (event, handler) => (handlers[event] = handler) })

for (const { event, input, output, branch = [], abort } of steps) {
  if (!event) continue
  const handler = handlers[event]
  if (client === "pi") {
    const sessionManager = { getSessionId: () => session, getSessionFile: () => file, getBranch: () => branch }
    const controller = new AbortController()
    const running = handler?.({ ...input, type: event, signal: controller.signal }, { cwd: folder, sessionManager })
    if (abort) controller.abort()
    const result = (await running) ?? null
    told.push({ result, sections: input?.systemPromptOptions?.sections ?? null })
  } else {
    await handler?.(input, output)
    told.push(output ?? null)
  }
}
console.log(JSON.stringify({ events: Object.keys(handlers), told }))
