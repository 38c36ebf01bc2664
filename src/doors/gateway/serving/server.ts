import type { EmbeddedModel } from '../../../learn/model/model.ts'
import { rendererFor } from '../../../learn/model/teach.ts'
import { Door } from '../../door/door.ts'
import { credentialOf } from '../secrets.ts'
import { problemTeller } from '../tell-problems.ts'
import { addCompletions } from './completions.ts'
import { addDialects } from './dialects.ts'
import { toServed } from './generation.ts'
import { addSglangRoutes } from './sglang.ts'

/** How a model is served. */
export interface ServeOptions {
  /** The folder the model came from. */
  readonly folder: string
  /** The name that clients may know it by. @default the folder */
  readonly name?: string
  /** 0 takes any free one. @default 30000 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** What clients send as bearer. Without one only this machine may connect. */
  readonly token?: string
  /** Names besides its address that clients may call it by. */
  readonly allowedHosts?: readonly string[]
  /** Folders that new weights may be taken from. @default the model's own */
  readonly weightFolders?: readonly string[]
  /** Seeds requests that bring none. @default 0 */
  readonly seed?: number
}

/** A server that runs; disposing of it ends what is under way and leaves the model open. */
export interface ModelServer extends AsyncDisposable {
  readonly url: string
}

/** Serves an embedded model over SGLang's protocol and all dialects; requests at one time share steps. */
export async function serveModel(
  model: EmbeddedModel,
  options: ServeOptions,
): Promise<ModelServer> {
  const { folder, name, port = 30_000, host = '127.0.0.1', seed = 0 } = options
  const renderer = rendererFor(name ?? folder, model.files)
  const served = toServed(model, {
    folder,
    ...(name !== undefined && { name }),
    weightFolders: options.weightFolders ?? [folder],
    stopIds: renderer.stopIds,
    seed,
  })
  const door = new Door({
    ...options,
    host,
    tokenOf: ({ headers }) => credentialOf(headers),
    tell: problemTeller('openai'),
  })
  addSglangRoutes(door, served)
  addCompletions(door, served)
  addDialects(door, served, renderer)
  const url = await door.listen(port)
  return {
    url,
    async [Symbol.asyncDispose]() {
      for (const controller of served.running.values()) controller.abort()
      await door.close()
    },
  }
}
