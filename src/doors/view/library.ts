import { readdirSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isRun } from '../../run/store/run-folder.ts'
import type { RunEntry } from './answers.ts'
import { importForeign } from './foreign.ts'
import { shownFolder } from './run-files.ts'
import { NotFoundError, ViewedRun } from './viewed-run.ts'

/** A run in the library, opened or not. */
interface Shelved {
  readonly name: string
  readonly folder: string
  readonly origin: string
  opening: Promise<ViewedRun> | undefined
}

/** Thrown for a run whose files cannot be read. */
class UnreadableRunError extends Error {
  override name = 'UnreadableRunError'
  readonly statusCode = 422
}

/** The runs that a page can open. Each is opened when it is first asked for. */
export class Library implements AsyncDisposable {
  readonly #runs = new Map<string, Shelved>()
  readonly #model: string | undefined
  #scratch: Promise<string> | undefined

  constructor(options: { readonly model?: string } = {}) {
    this.#model = options.model
  }

  /** Adds a run folder or a file in any format that can be imported; gives its name. */
  async add(path: string): Promise<string> {
    if (isRun(path)) return this.addRun(path, shownFolder(path))
    const { folder, format } = await this.importFile(path, basename(path))
    return this.addRun(folder, `${basename(path)}, read as ${format}`, basename(path))
  }

  /** Adds a run folder; one that is already there keeps its name. */
  addRun(folder: string, origin: string, wanted: string = basename(resolve(folder))): string {
    for (const { name, folder: known } of this.#runs.values()) {
      if (resolve(known) === resolve(folder)) return name
    }
    let name = wanted
    for (let number = 2; this.#runs.has(name); number++) name = `${wanted}-${number}`
    this.#runs.set(name, { name, folder, origin, opening: undefined })
    return name
  }

  /** Makes a run of a foreign file in a folder that goes away with this library. */
  async importFile(
    file: string,
    title: string,
    format?: string,
  ): Promise<{ folder: string; format: string; trajectories: number }> {
    this.#scratch ??= mkdtemp(join(tmpdir(), 'espalier-view-'))
    const out = join(await this.#scratch, `import-${crypto.randomUUID()}`)
    return await importForeign(file, { out, title, ...(format !== undefined && { format }) })
  }

  /** A folder for files that need not last. */
  async scratch(): Promise<string> {
    this.#scratch ??= mkdtemp(join(tmpdir(), 'espalier-view-'))
    return await this.#scratch
  }

  async open(name: string): Promise<ViewedRun> {
    const shelved = this.#runs.get(name)
    if (!shelved) {
      const known = [...this.#runs.keys()].slice(0, 20).join(', ') || 'none'
      throw new NotFoundError(`no run "${name}" is open here. Open: ${known}.`)
    }
    const { folder, origin } = shelved
    shelved.opening ??= ViewedRun.open({
      name,
      folder,
      origin,
      ...(this.#model !== undefined && { model: this.#model }),
    })
    try {
      return await shelved.opening
    } catch (error) {
      // Asked again it is read again: it may have been repaired.
      shelved.opening = undefined
      throw new UnreadableRunError((error as Error).message, { cause: error })
    }
  }

  /** Every run, newest last; those that cannot be read say why. */
  async list(): Promise<readonly RunEntry[]> {
    const entries = [...this.#runs.values()].map(async ({ name, origin }): Promise<RunEntry> => {
      try {
        const run = await this.open(name)
        await run.refresh()
        return run.entry
      } catch (error) {
        return {
          name,
          origin,
          kind: 'run',
          status: 'unreadable',
          problem: (error as Error).message,
        }
      }
    })
    return await Promise.all(entries)
  }

  get names(): readonly string[] {
    return [...this.#runs.keys()]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { opening } of this.#runs.values()) {
      const run = await opening?.catch(() => undefined)
      await run?.[Symbol.asyncDispose]()
    }
    if (this.#scratch) await rm(await this.#scratch, { recursive: true, force: true })
  }
}

/** Throws for a path that is neither a run nor a file, before a page is opened. */
export function checkSource(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found)
    throw new SettingError(`no run or file ${path}; runs lie in runs/ unless --out said otherwise`)
  if (!found.isDirectory() || isRun(path)) return
  const runs = readdirSync(path).filter(each => isRun(join(path, each)))
  const inside = runs.length === 0 ? '' : `, such as ${join(path, runs.sort().at(-1)!)}`
  throw new SettingError(`${path} is a folder without a run.json: name a run or a file${inside}`)
}
