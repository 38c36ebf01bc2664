import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, statfs, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { writeWhole } from '../../../base/core/files/whole-file.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { parseBounded } from '../../../base/core/process/bounded.ts'
import { type Blob, download } from './download.ts'
import { getFollowed, type Hub, hubAddress, readBody, refusal } from './request.ts'

/** A model on a hub. */
export interface HubModel {
  /** `OWNER/NAME`. */
  readonly id: string
  /** A branch, a tag or a commit. */
  readonly revision: string
  /** One GGUF file of it, if it has several. */
  readonly file?: string
}

/** Where and how weights are looked for. */
export interface SnapshotOptions extends Hub {
  /** Fetch nothing. */
  readonly offline: boolean
  readonly signal?: AbortSignal | undefined
  readonly tell: (line: string) => void
  /** Called as bytes come. */
  readonly onProgress?: (progress: Progress) => void
}

/** How far a download is. */
export interface Progress {
  readonly name: string
  readonly done: number
  readonly total: number
}

const idPattern = /^[A-Za-z0-9][\w.-]{0,95}\/[A-Za-z0-9][\w.-]{0,95}$/
const namePattern = /^[\w][\w.-]{0,200}$/

/** Reads `OWNER/NAME`, `OWNER/NAME@REVISION` and `OWNER/NAME/FILE.gguf`. */
export function readHubModel(text: string): HubModel {
  const [path = '', revision = 'main'] = text.split('@')
  const [owner, name = '', file, ...more] = path.split('/')
  const id = `${owner}/${name}`
  const isFile = file === undefined || (namePattern.test(file) && file.endsWith('.gguf'))
  if (
    !idPattern.test(id) ||
    id.includes('..') ||
    !namePattern.test(revision) ||
    !isFile ||
    more.length > 0
  ) {
    throw new SettingError(
      `embedded:hf:${text}: write embedded:hf:OWNER/NAME, with @REVISION if it is not main, or OWNER/NAME/FILE.gguf`,
    )
  }
  return { id, revision, ...(file !== undefined && { file }) }
}

/** The folder in which Hugging Face's tools keep a model. */
function cacheFolder(id: string): string {
  const home = process.env.HF_HOME ?? join(homedir(), '.cache', 'huggingface')
  return join(process.env.HF_HUB_CACHE ?? join(home, 'hub'), `models--${id.replace('/', '--')}`)
}

/**
 * The folder of a model with its weights, or its GGUF file: from the cache that Hugging Face's tools share if it is
 * whole there, else fetched into it. Only safetensors, GGUF and texts are fetched: no pickles, no code.
 */
export async function findWeights(model: HubModel, options: SnapshotOptions): Promise<string> {
  const folder = cacheFolder(model.id)
  const cached = await cachedSnapshot(folder, model)
  if (cached !== undefined) return cached
  if (options.offline) {
    throw new SettingError(
      `${model.id} (${model.revision}) is not whole in ${folder}, and --offline forbids fetching it`,
    )
  }
  return await fetchSnapshot(folder, model, options)
}

async function cachedSnapshot(folder: string, model: HubModel): Promise<string | undefined> {
  const { revision, file } = model
  const ref = await readFile(join(folder, 'refs', revision), 'utf8').catch(() => revision)
  const commit = ref.trim()
  if (!/^[0-9a-f]{40}$/.test(commit)) return undefined
  const snapshot = join(folder, 'snapshots', commit)
  if (file !== undefined) return existsSync(join(snapshot, file)) ? join(snapshot, file) : undefined
  if (await hasAllShards(snapshot)) return snapshot
  const names = await readdir(snapshot).catch(() => [])
  const ggufs = names.filter(name => name.endsWith('.gguf'))
  return ggufs.length === 1 ? join(snapshot, ggufs[0]!) : undefined
}

/** Whether the weights that a folder names are all there; whatever put them there put them there whole. */
async function hasAllShards(snapshot: string): Promise<boolean> {
  if (!existsSync(join(snapshot, 'tokenizer.json'))) return false
  if (existsSync(join(snapshot, 'model.safetensors'))) return true
  const text = await readFile(join(snapshot, indexName), 'utf8').catch(() => '{}')
  const { weight_map: map = {} } = JSON.parse(text) as { weight_map?: Record<string, string> }
  const names = [...new Set(Object.values(map))]
  if (!existsSync(join(snapshot, 'config.json'))) return false
  return names.length > 0 && names.every(name => existsSync(join(snapshot, name)))
}

const indexName = 'model.safetensors.index.json'

/** What a hub says of a revision. */
interface Listing {
  readonly commit: string
  readonly licence: string
  readonly files: readonly Blob[]
}

const largestListing = 16 * 2 ** 20

async function list({ id, revision }: HubModel, options: SnapshotOptions): Promise<Listing> {
  const address = `${hubAddress(options)}/api/models/${id}/revision/${encodeURIComponent(revision)}?blobs=true`
  const answer = await getFollowed(
    address,
    options,
    options.signal ? { signal: options.signal } : {},
  )
  if (answer.status !== 200) {
    await answer.body.dump()
    if (answer.status === 404)
      throw new Error(`${options.hub} has no ${id} with the revision ${revision}`)
    throw refusal(answer)
  }
  const text = (await readBody(answer, largestListing)).toString('utf8')
  const { sha, siblings = [], cardData, gated } = parseBounded(text) as Described
  if (typeof sha !== 'string' || !/^[0-9a-f]{40}$/.test(sha))
    throw new Error(`${address} names no commit`)
  const files = siblings.flatMap(({ rfilename: name, size, blobId, lfs }) => {
    const [hash, bytes] = [lfs?.sha256 ?? blobId, lfs?.size ?? size]
    // Folders, dotfiles and what has no hash to be held to are left alone.
    if (!namePattern.test(name) || !/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(hash ?? '')) return []
    return Number.isSafeInteger(bytes) ? [{ name, size: bytes!, hash: hash! }] : []
  })
  const licence = cardData?.license ?? 'none stated'
  return { commit: sha, licence: `${licence}${gated ? ', to be accepted there' : ''}`, files }
}

interface Described {
  readonly sha?: unknown
  readonly siblings?: readonly {
    readonly rfilename: string
    readonly size?: number
    readonly blobId?: string
    readonly lfs?: { readonly sha256?: string; readonly size?: number }
  }[]
  readonly cardData?: { readonly license?: string }
  readonly gated?: unknown
}

/** Texts of a model folder that belong to its weights or its tokenizer. */
const textNames = new Set([
  ...['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json'],
  ...['special_tokens_map.json', 'added_tokens.json', 'vocab.json', 'merges.txt'],
  ...['chat_template.jinja', 'chat_template.json', indexName],
])

/** The files that are fetched: safetensors with their texts, else one GGUF file. */
function wanted({ id, file }: HubModel, files: readonly Blob[]): readonly Blob[] {
  const names = new Set(files.map(({ name }) => name))
  const ggufs = files.filter(({ name }) => name.endsWith('.gguf'))
  const one = file === undefined ? undefined : ggufs.find(({ name }) => name === file)
  if (one) return [one]
  if (file !== undefined) throw new Error(`${id} has no ${file}; it has ${nameList(ggufs)}`)
  const weights = names.has('model.safetensors')
    ? files.filter(({ name }) => name === 'model.safetensors')
    : names.has(indexName)
      ? files.filter(({ name }) => /^model-\d+-of-\d+\.safetensors$/.test(name))
      : []
  if (weights.length > 0) return [...files.filter(({ name }) => textNames.has(name)), ...weights]
  if (ggufs.length === 1) return ggufs
  if (ggufs.length > 1) {
    throw new Error(
      `${id} has several GGUF files: name one, as in embedded:hf:${id}/${ggufs[0]!.name}. It has ${nameList(ggufs)}`,
    )
  }
  const pickles = files.filter(({ name }) => /\.(bin|pt|pth|ckpt)$/.test(name))
  const only =
    pickles.length > 0 ? `: only ${nameList(pickles)}, which may hold code and are not read` : ''
  throw new Error(`${id} has no safetensors and no GGUF${only}`)
}

function nameList(files: readonly Blob[]): string {
  return files.map(({ name }) => name).join(', ') || 'none'
}

async function fetchSnapshot(
  folder: string,
  model: HubModel,
  options: SnapshotOptions,
): Promise<string> {
  const { id, revision } = model
  const { commit, licence, files } = await list(model, options)
  const chosen = wanted(model, files)
  const blobs = join(folder, 'blobs')
  const snapshot = join(folder, 'snapshots', commit)
  await mkdir(blobs, { recursive: true })
  await mkdir(snapshot, { recursive: true })
  const missing = chosen.filter(({ hash }) => !existsSync(join(blobs, hash)))
  const total = missing.reduce((sum, { size }) => sum + size, 0)
  await checkSpace(blobs, total, id)
  const { hub, tell, onProgress } = options
  tell(
    `fetching ${id} (${megabytes(total)}) from ${hub} into ${folder}; licence: ${licence}, ${hub}/${id}`,
  )
  let before = 0
  for (const blob of chosen) {
    const path = join(blobs, blob.hash)
    if (!existsSync(path)) {
      const address = `${hubAddress(options)}/${id}/resolve/${commit}/${blob.name}`
      const start = before
      const onBytes = (bytes: number): void =>
        onProgress?.({ name: blob.name, done: start + bytes, total })
      await download(address, { blob, path }, { ...options, onBytes })
      before += blob.size
    }
    await link(blob, { blobs, snapshot })
  }
  await mkdir(join(folder, 'refs'), { recursive: true })
  // The revision is written last: its presence means that the snapshot is complete.
  if (revision !== commit) await writeWhole(join(folder, 'refs', revision), commit)
  return chosen[0]!.name.endsWith('.gguf') ? join(snapshot, chosen[0]!.name) : snapshot
}

/** Puts a blob into a snapshot; if links are not allowed, as on some Windows, the file itself. */
async function link(
  { name, hash }: Blob,
  { blobs, snapshot }: { readonly blobs: string; readonly snapshot: string },
): Promise<void> {
  const place = join(snapshot, name)
  if (existsSync(place)) return
  await rm(place, { force: true })
  await symlink(join('..', '..', 'blobs', hash), place).catch(() =>
    rename(join(blobs, hash), place),
  )
}

async function checkSpace(folder: string, needed: number, id: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (needed <= free) return
  throw new Error(`${id} needs ${megabytes(needed)}, and ${folder} has ${megabytes(free)} left`)
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}
