/** The signals that have a handler. */
const answers = new Map<NodeJS.Signals, () => void>()
let areLifted = false

/** Handles a signal while the event loop runs. */
export function onSignal(name: NodeJS.Signals, answer: () => void): void {
  answers.set(name, answer)
  process.on(name, answer)
}

/**
 * Call before or during work whose length an outsider decides and that blocks the event loop: loading
 * a tokenizer, a slow template, a huge text. No handler can run meanwhile, so until the loop turns
 * again signals have their default effect: they end the process at once. The run folder is then as
 * after a kill, and can be resumed.
 */
export function holdLoop(): void {
  if (areLifted || answers.size === 0) return
  areLifted = true
  for (const [name, answer] of answers) process.removeListener(name, answer)
  setImmediate(() => {
    areLifted = false
    for (const [name, answer] of answers) process.on(name, answer)
  })
}
