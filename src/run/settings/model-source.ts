import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ModelRenderer, RendererOptions } from '@espalier/text/chat'
import { readModelFolder } from '@espalier/text/chat'
import type { ReasoningFormat, ToolFormat } from '@espalier/text/parsers'
import type { Policy } from '../../base/core/policy.ts'
import { packageFolder } from '../../base/core/process/package-folder.ts'
import { fetchModel } from './hub/tokenizer-files.ts'
import { defaults } from './settings.ts'

/** Where a model's tokenizer and template may come from. */
export interface ModelSourceOptions {
  /** Never fetch. @default false */
  readonly offline?: boolean
  /** @default 'https://huggingface.co' */
  readonly hub?: string
  /** Called before anything is fetched. */
  readonly tell?: (line: string) => void
}

/** The model folder in this package that spells text byte by byte; for scripted answers and tests. */
export const byteModel = fileURLToPath(new URL('models/chatml-bytes', packageFolder))

/** Opens a renderer from a model folder or a Hugging Face id. */
export async function openRenderer(
  model: string,
  options: Partial<RendererOptions> & ModelSourceOptions = {},
): Promise<ModelRenderer> {
  const { offline = false, hub, tell, ...rest } = options
  const folder = await findModel(model, { offline, ...(hub && { hub }), ...(tell && { tell }) })
  // One date for all that it renders, so that templates always write the same one.
  const today = new Date()
  // Templates and parsers are a third of the program; servers are greeted before they are loaded.
  const { createRenderer } = await import('@espalier/text/chat')
  return createRenderer(await readModelFolder(folder), { clock: () => today, ...rest })
}

/** The options of a run that say how its model folder is found and used. */
export interface RenderingOptions extends Omit<ModelSourceOptions, 'tell'> {
  readonly history?: RendererOptions['history']
  readonly markers?: RendererOptions['markers']
  readonly templateVariables?: Readonly<Record<string, unknown>>
  readonly toolInstruction?: RendererOptions['toolInstruction'] | undefined
  readonly toolFormat?: string | undefined
  readonly reasoningFormat?: string | undefined
  /** The date that chat templates write. @default that on which the run began */
  readonly today?: Date | undefined
}

/** The options of a run that say how its model folder is found and used. */
export function rendererSettings(
  options: RenderingOptions,
): Partial<RendererOptions> & ModelSourceOptions {
  const { toolInstruction, toolFormat, reasoningFormat, today } = options
  const { history = defaults.history, hub = defaults.hub, offline = defaults.offline } = options
  return {
    history,
    markers: options.markers ?? defaults.markers,
    templateVariables: options.templateVariables ?? defaults.templateVariables,
    ...(toolInstruction && { toolInstruction }),
    ...(today && { clock: () => today }),
    // Names that no parser has are refused by the renderer, which knows them all.
    ...(toolFormat !== undefined && { toolFormat: toolFormat as ToolFormat }),
    ...(reasoningFormat !== undefined && { reasoningFormat: reasoningFormat as ReasoningFormat }),
    offline,
    hub,
  }
}

/** The model that a policy's server says it serves; without a server, the byte model of this package. */
export async function findModelOf(
  policy: Policy,
  signal: AbortSignal = new AbortController().signal,
): Promise<string> {
  if (!policy.describe) return byteModel
  const { model } = await policy.describe({ signal })
  if (model) return model
  throw new Error(
    `${policy.name} does not say which model it serves: name its folder or id with --model`,
  )
}

/** An id as Hugging Face gives them: an owner, if any, and a name. */
const idPattern = /^(?:[A-Za-z0-9][\w.-]{0,95}\/)?[A-Za-z0-9][\w.-]{0,95}$/

/** The folder of a model: itself, a snapshot in the local cache, or freshly fetched files. */
export async function findModel(model: string, options: ModelSourceOptions = {}): Promise<string> {
  if (existsSync(model)) return model
  if (!idPattern.test(model) || model.includes('..')) {
    throw new Error(
      `no folder ${model}, and it is not a Hugging Face id of the form owner/name either: ` +
        'name the model with --model',
    )
  }
  const own = ownCache(model)
  const shared = sharedCache(model)
  const cached = existsSync(join(own, 'tokenizer.json')) ? own : await findSnapshot(shared)
  if (cached) return cached
  const missing = `${model} is not a folder here and not in the local caches (${own}, ${shared})`
  if (options.offline) {
    throw new Error(`${missing}, and --offline forbids fetching it. ${instead}`)
  }
  const { hub = defaults.hub, tell } = options
  const key = process.env.HF_TOKEN
  tell?.(`fetching tokenizer and chat template of ${model} from ${hub} into ${own}`)
  try {
    await fetchModel(model, { hub, folder: own, ...(key && { key }) })
  } catch (cause) {
    const { message } = cause as Error
    throw new Error(`${missing}, and cannot be fetched: ${message}. ${instead}`, { cause })
  }
  return own
}

const instead =
  'Give --model a folder that has its tokenizer.json and chat template: a local copy, or one of ' +
  'another model with the same tokenizer'

/** Where files are kept that this program fetched. */
function ownCache(model: string): string {
  const root = process.env.ESPALIER_CACHE ?? join(homedir(), '.cache', 'espalier')
  return join(root, 'models', model.replace('/', '--'))
}

/** Where Hugging Face's own tools keep a model. */
function sharedCache(model: string): string {
  const home = process.env.HF_HOME ?? join(homedir(), '.cache', 'huggingface')
  const root = process.env.HF_HUB_CACHE ?? join(home, 'hub')
  return join(root, `models--${model.replace('/', '--')}`)
}

/** A snapshot in the folder of a model: of its main revision, else any that is whole. */
async function findSnapshot(folder: string): Promise<string | undefined> {
  const main = await readFile(join(folder, 'refs', 'main'), 'utf8').catch(() => '')
  const revisions = await readdir(join(folder, 'snapshots')).catch(() => [])
  const ordered = revisions.sort((a, b) => Number(b === main.trim()) - Number(a === main.trim()))
  return ordered
    .map(revision => join(folder, 'snapshots', revision))
    .find(snapshot => existsSync(join(snapshot, 'tokenizer.json')))
}
