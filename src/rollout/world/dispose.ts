import { inTime } from '../../core/deadline.ts'

/** Seconds that a world may take to be disposed of: stopping a container takes ten. */
export const disposalSeconds = 30

const { signal: neverStops } = new AbortController()

/** Disposes of a world, within bounds also after its attempt was stopped; throws if that fails. */
export async function disposeOf(world: AsyncDisposable): Promise<void> {
  const bounds = { seconds: disposalSeconds, signal: neverStops }
  await inTime('disposing of the world', bounds, () => world[Symbol.asyncDispose]())
}
