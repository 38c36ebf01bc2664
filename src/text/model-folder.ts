import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** What a Hugging Face model folder says about its tokenizer and its chat template. */
export interface ModelFiles {
  /** The folder's name, for people. */
  readonly name: string
  /** `tokenizer.json`, parsed. */
  readonly tokenizer: unknown
  /** `tokenizer_config.json`, parsed; empty where there is none. */
  readonly config: Readonly<Record<string, unknown>>
  readonly template: string
  /** The template to use where tools are offered, if the folder has one of its own for that. */
  readonly toolTemplate?: string
  /** Ids that end a generation, by `generation_config.json`. */
  readonly endIds: readonly number[]
}

/** The files of a model folder that rendering needs; the first is the only one that must be there. */
export const modelFileNames = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'generation_config.json',
] as const

/** Reads a model folder as Hugging Face publishes it; a folder with `models/` inside is read there. */
export async function readModelFolder(path: string): Promise<ModelFiles> {
  if (!existsSync(path)) throw new Error(`no folder ${path}`)
  const inner = join(path, 'models')
  const folder = !existsSync(join(path, 'tokenizer.json')) && existsSync(inner) ? inner : path
  const tokenizer = await readJson(folder, 'tokenizer.json')
  if (tokenizer === undefined) {
    throw new Error(
      `${path} has no tokenizer.json: it is not a model folder as Hugging Face publishes them`,
    )
  }
  const config = asRecord(await readJson(folder, 'tokenizer_config.json'))
  const written = join(folder, 'chat_template.jinja')
  const templates = existsSync(written)
    ? { template: await readFile(written, 'utf8') }
    : templatesIn(config.chat_template, path)
  const generation = asRecord(await readJson(folder, 'generation_config.json'))
  const name = folder === inner ? basename(path) : basename(folder)
  return {
    name,
    tokenizer,
    config,
    ...templates,
    endIds: [generation.eos_token_id ?? []].flat() as number[],
  }
}

async function readJson(folder: string, name: string): Promise<unknown> {
  const path = join(folder, name)
  if (!existsSync(path)) return undefined
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new Error(`${path} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** A template as `tokenizer_config.json` has it: one text, or a list of named ones. */
function templatesIn(
  value: unknown,
  path: string,
): { readonly template: string; readonly toolTemplate?: string } {
  if (typeof value === 'string') return { template: value }
  const named = new Map(
    (Array.isArray(value) ? value : []).map((entry: { name: string; template: string }) => [
      entry.name,
      entry.template,
    ]),
  )
  const template = named.get('default')
  const toolTemplate = named.get('tool_use')
  if (template === undefined) {
    throw new Error(
      `${path} has no chat template, neither chat_template.jinja nor in tokenizer_config.json`,
    )
  }
  return toolTemplate === undefined ? { template } : { template, toolTemplate }
}
