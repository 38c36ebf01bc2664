import type { Environment } from '../../base/core/environment.ts'
import { describeCause } from '../../base/core/failure.ts'
import { disposeInTime } from '../../base/core/process/deadline.ts'

/**
 * Disposes of an environment that was opened by name, as worlds are disposed of: within bounds, also after the
 * run was stopped, and if that fails, what was rolled still counts.
 */
export async function closeEnvironment(
  environment: Pick<Environment, 'name' | typeof Symbol.asyncDispose>,
  tell: (line: string) => void = () => {},
): Promise<void> {
  try {
    await disposeInTime('it', environment)
  } catch (error) {
    tell(`WARNING environment "${environment.name}" was not disposed of: ${describeCause(error)}`)
  }
}
