import { disposeInTime } from '../../../base/core/process/deadline.ts'

/** Disposes of a world, within bounds also after its attempt was stopped; throws if that fails. */
export function disposeOf(world: AsyncDisposable): Promise<void> {
  return disposeInTime('the world', world)
}
