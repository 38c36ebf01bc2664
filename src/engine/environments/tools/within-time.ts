import { createContext, Script } from 'node:vm'
import { late } from '../late.ts'

/** Made with the first deadline: a context takes milliseconds. */
const stage = late(() => ({
  script: new Script('work()'),
  context: createContext({ work: () => undefined }),
}))

/** How deep calls are nested; only the outermost sets a deadline, as an inner one would end the outer work too. */
let depth = 0

/**
 * Runs synchronous work and interrupts it when its time is over; the result is then undefined. Inside
 * work that has a deadline already, only that one counts.
 */
export function withinTime<Made>(milliseconds: number, work: () => Made): Made | undefined {
  if (depth > 0) return work()
  const { script, context } = stage()
  let made: Made | undefined
  context.work = () => {
    made = work()
  }
  depth++
  try {
    script.runInContext(context, { timeout: milliseconds })
    return made
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw cause
  } finally {
    depth--
    context.work = () => undefined
  }
}
