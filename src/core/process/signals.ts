/** The signals that are answered in order, and how. */
const answers = new Map<NodeJS.Signals, () => void>()
let areLifted = false

/** Answers a signal while the event loop turns. */
export function onSignal(name: NodeJS.Signals, answer: () => void): void {
  answers.set(name, answer)
  process.on(name, answer)
}

/**
 * To be called before work, or in the midst of it, that holds the event loop for as long as an
 * outsider wants: a tokenizer that is loaded, a template that takes its time, a huge text. No answer to a
 * signal can run meanwhile, so until the loop turns again signals do what they do to every program: end
 * it at once. What is on disk then is what a killed process leaves, from which everything goes on.
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
