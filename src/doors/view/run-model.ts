import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { baseModel } from '../../learn/model/embedded.ts'
import { byteModel, openRenderer } from '../../run/settings/model-source.ts'
import type { RunManifest } from '../../run/store/run-folder.ts'
import { makeTexts, plainTexts, type TokenTexts } from './answer/token-texts.ts'

/** The texts of a run's tokens, or why there are none. */
export interface RunModel {
  readonly texts: TokenTexts
  readonly model: { readonly name: string } | { readonly problem: string }
}

/**
 * Opens the tokenizer of the model that a run was rolled with: the one that was named, the run's own,
 * or the embedded policy's. Nothing is downloaded; only files on this machine are used.
 */
export async function findRunModel(manifest: Rolled, named: string | undefined): Promise<RunModel> {
  const model = named ?? modelOf(manifest)
  if (model === undefined) {
    return missing(
      'the run does not say which model it was rolled with; espalier view --model DIR names it',
    )
  }
  try {
    const place = named ?? runModelOf(manifest)!
    const { tokenizer } = await openRenderer(place, { offline: true })
    return { texts: makeTexts(tokenizer), model: { name: model } }
  } catch (error) {
    return missing(`${(error as Error).message}`)
  }
}

function missing(problem: string): RunModel {
  return { texts: plainTexts, model: { problem } }
}

/** What a run says of how it was rolled. */
type Rolled = Pick<RunManifest, 'config' | 'directory'>

/** Where the model that a run was rolled with is found, as far as the run says it: a folder, or a name. */
export function runModelOf(manifest: Rolled): string | undefined {
  const model = modelOf(manifest)
  return model === undefined ? undefined : (folderOf(model, manifest) ?? model)
}

function folderOf(model: string, { directory = '.' }: Rolled): string | undefined {
  const folder = resolve(directory, model)
  return existsSync(folder) ? folder : undefined
}

function modelOf(manifest: Rolled): string | undefined {
  const { model, policy } = manifest.config
  if (typeof model === 'string') return model
  const uri = Array.isArray(policy) ? policy[0] : policy
  if (typeof uri !== 'string') return undefined
  const [scheme, ...rest] = uri.split(':')
  const named = rest.join(':')
  if (scheme === 'embedded') return named !== '' && folderOf(named, manifest) ? named : baseModel
  return scheme === 'scripted' ? byteModel : undefined
}
