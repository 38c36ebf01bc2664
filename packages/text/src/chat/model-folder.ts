import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ggufModelFiles, isGgufPath, readGgufHeader } from '../gguf/index.ts'
import type { ImageConfigs } from '../images/index.ts'
import { holdLoop } from '../signals/index.ts'

/** The largest file that is read: several times the largest published vocabulary. */
const largestFile = 256 * 2 ** 20

/** What a Hugging Face model folder says about its tokenizer and its chat template. */
export interface ModelFiles {
  /** The folder's name, for people. */
  readonly name: string
  /** `tokenizer.json`, parsed. */
  readonly tokenizer: unknown
  /** `tokenizer_config.json`, parsed; empty if there is none. */
  readonly config: Readonly<Record<string, unknown>>
  readonly template: string
  /** The template to use if tools are offered, if the folder has one of its own for that. */
  readonly toolTemplate?: string
  /** Ids that end a generation, by `generation_config.json`. */
  readonly endIds: readonly number[]
  /** How the model's processor sees images, if the folder says so. */
  readonly images?: ImageConfigs
}

/** The files of a model folder that rendering needs; the first is the only one that must be there. */
export const modelFileNames = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'chat_template.json',
  'generation_config.json',
  'preprocessor_config.json',
  'processor_config.json',
] as const

/** Reads a model folder as Hugging Face publishes it, or a GGUF file; a folder with `models/` inside is read there. */
export async function readModelFolder(path: string): Promise<ModelFiles> {
  if (!existsSync(path)) throw new Error(`no folder ${path}`)
  if (isGgufPath(path)) return readGguf(path)
  const inner = join(path, 'models')
  const folder = !existsSync(join(path, 'tokenizer.json')) && existsSync(inner) ? inner : path
  const tokenizer = await readJson(folder, 'tokenizer.json')
  if (tokenizer === undefined) {
    throw new Error(
      `${path} has no tokenizer.json: it is not a model folder as Hugging Face publishes them`,
    )
  }
  const config = asRecord(await readJson(folder, 'tokenizer_config.json'))
  const generation = asRecord(await readJson(folder, 'generation_config.json'))
  const images = await readImageConfigs(folder)
  return {
    name: nameOf(path),
    tokenizer,
    config,
    ...(await readTemplates(folder, config)),
    endIds: readEndIds(generation.eos_token_id, join(folder, 'generation_config.json')),
    ...(images && { images }),
  }
}

/** The configurations of an image processor; nothing for a model that only reads text. */
async function readImageConfigs(folder: string): Promise<ImageConfigs | undefined> {
  const preprocessor = await readJson(folder, 'preprocessor_config.json')
  const processor = await readJson(folder, 'processor_config.json')
  const named = [preprocessor, asRecord(processor).image_processor].map(asRecord)
  const seesImages = named.some(({ image_processor_type: type }) => type !== undefined)
  return seesImages ? { preprocessor, processor } : undefined
}

/** The same of a GGUF file, which has all of it in its header. */
function readGguf(path: string): ModelFiles {
  const files = ggufModelFiles(readGgufHeader(path))
  const parsed = (name: string): unknown => JSON.parse(files.get(name)!)
  const template = files.get('chat_template.jinja')
  if (template === undefined) throw new Error(`${path} has no chat template.`)
  return {
    name: basename(path),
    tokenizer: parsed('tokenizer.json'),
    config: asRecord(parsed('tokenizer_config.json')),
    template,
    endIds: readEndIds(asRecord(parsed('generation_config.json')).eos_token_id, path),
  }
}

/** A folder's own name; of a snapshot in the cache of Hugging Face's tools, the model's id. */
function nameOf(path: string): string {
  const cache = basename(dirname(dirname(path)))
  if (basename(dirname(path)) === 'snapshots' && cache.startsWith('models--')) {
    return cache.slice('models--'.length).replace('--', '/')
  }
  return basename(path)
}

async function readJson(folder: string, name: string): Promise<unknown> {
  const path = join(folder, name)
  if (!existsSync(path)) return undefined
  const { size } = await stat(path)
  if (size > largestFile) {
    throw new Error(`${path} has ${size} bytes; at most ${largestFile} are read`)
  }
  try {
    const text = await readFile(path, 'utf8')
    holdLoop()
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${path} is not JSON: ${(cause as Error).message}`, { cause })
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function readEndIds(value: unknown, path: string): readonly number[] {
  const ids = [value ?? []].flat()
  const bad = ids.find(id => !Number.isInteger(id) || (id as number) < 0)
  if (bad === undefined) return ids as number[]
  throw new Error(`${path}: eos_token_id should be ids, but has ${JSON.stringify(bad)}`)
}

type Templates = Pick<ModelFiles, 'template' | 'toolTemplate'>

/** Templates in files of their own go before those in `tokenizer_config.json`. */
async function readTemplates(
  folder: string,
  config: Readonly<Record<string, unknown>>,
): Promise<Templates> {
  const written = await readText(join(folder, 'chat_template.jinja'))
  const tools = await readText(join(folder, 'additional_chat_templates', 'tool_use.jinja'))
  if (written !== undefined) {
    return { template: written, ...(tools !== undefined && { toolTemplate: tools }) }
  }
  const separate = asRecord(await readJson(folder, 'chat_template.json')).chat_template
  return templatesIn(separate ?? config.chat_template, folder)
}

async function readText(path: string): Promise<string | undefined> {
  return existsSync(path) ? await readFile(path, 'utf8') : undefined
}

/** A template as JSON files have it: one text, or a list of named ones. */
function templatesIn(value: unknown, folder: string): Templates {
  if (typeof value === 'string') return { template: value }
  const named = new Map(
    (Array.isArray(value) ? value.map(asRecord) : []).map(entry => [entry.name, entry.template]),
  )
  const [template, toolTemplate] = [named.get('default'), named.get('tool_use')]
  if (typeof template !== 'string') {
    throw new Error(
      `${folder} has no chat template, neither chat_template.jinja nor in tokenizer_config.json`,
    )
  }
  return typeof toolTemplate === 'string' ? { template, toolTemplate } : { template }
}
