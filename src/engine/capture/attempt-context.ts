import { AsyncLocalStorage } from 'node:async_hooks'
import type { Hooks } from './hooks.ts'

const attempts = new AsyncLocalStorage<Hooks>()

/** Runs an agent so that whatever it starts finds its attempt. */
export function inAttempt<T>(hooks: Hooks, work: () => T): T {
  return attempts.run(hooks, work)
}

/** The ways to ask of the attempt that this code runs in; throws outside of one. */
export function currentAttempt(): Hooks {
  const hooks = attempts.getStore()
  if (hooks) return hooks
  throw new Error(
    'No attempt is running here: this is for code that an agent({ run }) calls while it is rolled.',
  )
}
