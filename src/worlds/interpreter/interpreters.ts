import { availableParallelism } from 'node:os'
import type { Call } from '../../base/core/call.ts'
import { type Lease, openPool, type Pool } from '../../engine/environments/pool.ts'
import { type Interpreter, type InterpreterLimits, openInterpreter } from './child.ts'
import type { Language } from './language.ts'

/** How many processes there are. */
export interface InterpretersOptions extends InterpreterLimits {
  /** Processes of a language at one time. @default one per core, between 2 and 8 */
  readonly workers?: number
  /** Processes of a language kept ready. @default 1 */
  readonly warm?: number
}

/** A holder of a process that can give it up while nothing runs. */
export interface Holder {
  release(): Promise<void>
}

/** The processes of a language. One in which nothing runs is lent to the next who needs it. */
export interface Interpreters extends AsyncDisposable {
  take(call: Call): Promise<Lease<Interpreter>>
  /** The holder runs nothing now: its process may be taken from it. */
  rest(holder: Holder): Promise<void>
  /** The holder runs code again, or has gone. */
  wake(holder: Holder): void
}

/** Opens the processes of a language; the first start in the background. */
export function openInterpreters(language: Language, options: InterpretersOptions): Interpreters {
  const { workers = Math.min(8, Math.max(2, availableParallelism())), warm = 1 } = options
  const pool: Pool<Interpreter> = openPool({
    size: workers,
    warm: Math.min(warm, workers),
    open: call => openInterpreter(language, { ...options, ...call }),
    close: interpreter => interpreter.close(),
    isHealthy: interpreter => interpreter.isAlive,
  })
  // In order of resting, the longest first.
  const resting = new Set<Holder>()
  const isFull = (): boolean => {
    const { leased, moving, waiting } = pool.counts
    return leased + moving + waiting >= workers
  }
  return {
    async take(call) {
      const [longest] = resting
      if (longest && isFull()) {
        resting.delete(longest)
        await longest.release()
      }
      return await pool.take(call)
    },
    async rest(holder) {
      if (pool.counts.waiting > 0) await holder.release()
      else resting.add(holder)
    },
    wake(holder) {
      resting.delete(holder)
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  }
}
