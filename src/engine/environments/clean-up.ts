import { describeCause } from '../../base/core/failure.ts'

/** Collects what has to be cleaned up, and does it once. */
export interface CleanUp {
  defer(work: () => void | PromiseLike<void>): void
  /** Runs everything, last deferred first, whatever fails on the way; then throws what failed. */
  run(): Promise<void>
  /** Runs everything because of `cause`, and throws that. */
  runAfter(cause: unknown): Promise<never>
}

/** Opens an empty list of things to clean up. */
export function makeCleanUp(): CleanUp {
  const deferred: (() => void | PromiseLike<void>)[] = []
  async function run(): Promise<void> {
    const failures: unknown[] = []
    for (let work = deferred.pop(); work; work = deferred.pop()) {
      try {
        await work()
      } catch (cause) {
        failures.push(cause)
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, 'Several clean-ups failed.')
  }
  return {
    defer: work => {
      deferred.push(work)
    },
    run,
    async runAfter(cause) {
      await run().catch(failure => {
        throw new AggregateError([cause, failure], `${describeCause(cause)}; so did its clean-up`)
      })
      throw cause
    },
  }
}
