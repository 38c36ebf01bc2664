import { withinSeconds } from './within-seconds.ts'

/** Seconds that a world may take to be disposed of: stopping a container takes ten. */
export const disposalSeconds = 30

/** Disposes of a world, within bounds also after its attempt was stopped; throws if that fails. */
export async function disposeOf(world: AsyncDisposable): Promise<void> {
  const { signal } = new AbortController()
  const bound = { what: 'disposing of the world', seconds: disposalSeconds, signal }
  await withinSeconds(bound, () => world[Symbol.asyncDispose]())
}
