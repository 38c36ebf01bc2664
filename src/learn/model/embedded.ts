import { fileURLToPath } from 'node:url'
import { steadySeconds } from '../../base/core/call.ts'
import { packageFolder } from '../../base/core/process/package-folder.ts'
import { type ModelSettings, openModel } from './model.ts'
import { type EmbeddedPolicy, embeddedPolicy } from './policy.ts'

/** The base model of this package: it knows the desk's tools and manners, but not its rules. */
export const baseModel = fileURLToPath(new URL('base-model', packageFolder))

/** Opens the policy that runs inside, from a model folder. */
export async function openEmbedded(
  folder: string = baseModel,
  settings: ModelSettings = {},
): Promise<EmbeddedPolicy> {
  const model = await openModel({ folder }, settings)
  return embeddedPolicy(model, {
    folder,
    clock: steadySeconds,
    warn: message => process.emitWarning(message, 'EspalierWarning'),
  })
}
