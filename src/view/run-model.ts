import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { baseModel } from '../model/embedded.ts'
import { byteModel, openRenderer } from '../settings/model-source.ts'
import type { RunManifest } from '../store/run-folder.ts'
import { openTexts, plainTexts, type TokenTexts } from './answer/token-texts.ts'

/** The texts of a run's tokens, or why there are none. */
export interface RunModel {
  readonly texts: TokenTexts
  readonly model: { readonly name: string } | { readonly problem: string }
}

/**
 * Opens the tokenizer of the model that a run was rolled with: the one that was named, the run's own,
 * or the embedded policy's. Nothing is downloaded; only files on this machine are used.
 */
export async function openRunModel(
  { config, directory }: RunManifest,
  named: string | undefined,
): Promise<RunModel> {
  const model = named ?? modelOf(config)
  if (model === undefined) {
    return missing(
      'the run does not say which model it was rolled with; espalier view --model DIR names it',
    )
  }
  const folder = directory === undefined || named !== undefined ? model : resolve(directory, model)
  try {
    const { tokenizer } = await openRenderer(existsSync(folder) ? folder : model, { offline: true })
    return { texts: openTexts(tokenizer), model: { name: model } }
  } catch (error) {
    return missing(`${(error as Error).message}`)
  }
}

function missing(problem: string): RunModel {
  return { texts: plainTexts, model: { problem } }
}

function modelOf({ model, policy }: RunManifest['config']): string | undefined {
  if (typeof model === 'string') return model
  const uri = Array.isArray(policy) ? policy[0] : policy
  if (typeof uri !== 'string') return undefined
  const [scheme, ...rest] = uri.split(':')
  const where = rest.join(':')
  if (scheme === 'embedded') return where !== '' && existsSync(where) ? where : baseModel
  return scheme === 'scripted' ? byteModel : undefined
}
