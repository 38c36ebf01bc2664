import { fileURLToPath } from 'node:url'
import type { Environment, Task } from '../core/environment.ts'
import { openLanes } from '../core/lane.ts'
import { type ModelSettings, openModel } from '../model/model.ts'
import { type EmbeddedPolicy, embeddedPolicy } from '../model/policy.ts'
import { isByteToken } from '../model/vocabulary.ts'
import type { ModelRenderer } from '../text/renderer.ts'

/** The base model of this package: it knows how to serve at the desk, not by which rules. */
export const baseModel = fileURLToPath(new URL('../../base-model', import.meta.url))

/** Opens the policy that runs inside, from a model folder. */
export async function openEmbedded(
  folder: string = baseModel,
  settings: ModelSettings = {},
): Promise<EmbeddedPolicy> {
  const model = await openModel({ folder }, settings)
  return embeddedPolicy(model, { folder, clock: () => performance.now() / 1000 })
}

/** The most of an opening that may be spelled in bytes before somebody should know. */
const bearableBytes = 0.2

/**
 * What to tell people whose environment speaks words that an embedded model does not know;
 * `undefined` where it knows enough of them.
 */
export async function strangeWords<Data>(
  environment: Environment<Data>,
  task: Task<Data>,
  renderer: ModelRenderer,
): Promise<string | undefined> {
  const { signal } = new AbortController()
  const lanes = openLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
  await using world = await environment.open(task, { signal, seed: 0, lanes })
  const ids = renderer.render(world.opening, world.tools)
  const bytes = ids.filter(id => isByteToken(renderer.tokenizer.tokenOf(id))).length
  if (bytes <= bearableBytes * ids.length) return undefined
  const share = Math.round((100 * bytes) / ids.length)
  return (
    `${share} % of the opening of "${environment.name}" are bytes to the embedded model ${renderer.name}: ` +
    'it does not know these words. `espalier teach` makes one that does, from demonstrations.'
  )
}
