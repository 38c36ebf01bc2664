import { createContext, Script } from 'node:vm'

const script = new Script('work()')
const context = createContext({ work: () => undefined })

/** How deep this is within itself; the innermost deadline would end the outer one's work too. */
let depth = 0

/**
 * Does work that does not wait for anything, and stops in the midst of it when its time is over;
 * undefined then. Within work that has a deadline already, that one holds.
 */
export function withinTime<Made>(milliseconds: number, work: () => Made): Made | undefined {
  if (depth > 0) return work()
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
