import { existsSync, statSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Environment } from '../../base/core/environment.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { shownValue } from '../settings/check-settings.ts'
import { tasksOneByOne } from '../settings/option-kinds.ts'

/** Refuses an environment that is none, and a run folder below a file, before anything is opened. */
export function checkRolling(environment: unknown, out: string | undefined): void {
  checkEnvironment(environment)
  if (out !== undefined) refuseBelowFile(out)
}

/** Refuses a folder that cannot be made, because a file is in the place of one above it. */
export function refuseBelowFile(out: string, from: string = dirname(resolve(out))): void {
  let above = from
  while (!existsSync(above)) above = dirname(above)
  if (statSync(above).isDirectory()) return
  throw new SettingError(`--out ${out}: ${relative('.', above)} is a file, not a folder`)
}

function checkEnvironment(given: unknown): void {
  if (typeof given === 'string') return
  const { open, readTask } = (given ?? {}) as Partial<Environment>
  if (typeof open === 'function' && typeof readTask === 'function') return
  throw new SettingError(
    `environment: ${shownValue(given)} is neither an environment nor an agent: make one with environment({ … }) or agent({ … }), or name one, as in 'calculator'`,
  )
}

/** Refuses tasks that nothing can be read from. */
export function checkTaskArgument(tasks: unknown): void {
  if (typeof tasks === 'string' || tasksOneByOne.fits(tasks)) return
  if (typeof tasks === 'number' && Number.isSafeInteger(tasks) && tasks >= 1) return
  throw new SettingError(
    `tasks: ${shownValue(tasks)} is not possible: a file, a run, how many to make (a whole number from 1 on), ${tasksOneByOne.wanted}`,
  )
}
