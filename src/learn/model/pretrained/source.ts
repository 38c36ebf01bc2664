import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isGgufPath } from '@espalier/text/gguf'
import { parseObject, readCompanions } from '../checkpoint.ts'
import { type GgufModel, openGguf } from '../gguf/gguf-file.ts'
import type { ModelShape } from '../shape.ts'
import { readPretrainedConfig } from './config.ts'

/** What is known of a pretrained model before its weights are read. */
export interface Pretrained {
  readonly path: string
  readonly shape: ModelShape
  /** Tokenizer and template files. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** Reads what a model's folder or GGUF file says of it, without its weights. */
export async function readPretrained(
  path: string,
  { context }: { readonly context?: number | undefined } = {},
): Promise<Pretrained> {
  if (isGgufPath(path)) return readGgufSource(path, context)
  const source = join(path, 'config.json')
  const config = parseObject(await readFile(source, 'utf8'), source)
  const shape = readPretrainedConfig(config, path, context)
  return { path, shape, files: await readCompanions(path) }
}

/** A GGUF file says what a folder would. */
function readGgufSource(path: string, context: number | undefined): Pretrained {
  using model = openGguf(path)
  const shape = readPretrainedConfig({ ...model.config }, path, context)
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
  const files = [...filesOf(model)].map(([name, text]) => [name, encode(text)] as const)
  return { path, shape, files: new Map(files) }
}

/** A tokenizer that is not exact from the file says so when somebody renders by it, and no `--model` names another. */
function filesOf(model: GgufModel): ReadonlyMap<string, string> {
  try {
    return model.files()
  } catch {
    return new Map()
  }
}
