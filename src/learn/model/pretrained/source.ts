import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseObject, readCompanions } from '../checkpoint.ts'
import type { ModelShape } from '../shape.ts'
import { readPretrainedConfig } from './config.ts'

/** What is known of a pretrained model before its weights are read. */
export interface Pretrained {
  readonly path: string
  readonly shape: ModelShape
  /** Tokenizer and template files. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Reads what a model's folder says of it, without its weights. */
export async function readPretrained(
  path: string,
  { context }: { readonly context?: number | undefined } = {},
): Promise<Pretrained> {
  const source = join(path, 'config.json')
  const config = parseObject(await readFile(source, 'utf8'), source)
  const shape = readPretrainedConfig(config, path, context)
  return { path, shape, files: await readCompanions(path) }
}
