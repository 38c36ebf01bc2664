import { treeOf } from '../../src/base/core/ids.ts'
import { compareSides, rowsOfSide, type Side } from '../../src/doors/view/answer/comparison.ts'
import { imageRunsOn } from '../../src/doors/view/answer/image-runs.ts'
import { partingOf } from '../../src/doors/view/answer/parting.ts'
import type { GroupRow } from '../../src/doors/view/answers.ts'
import { saysText } from '../../src/doors/view/index/says-text.ts'
import { queryGroups } from '../../src/doors/view/query.ts'
import type { StaticGroup, StaticRun, StaticTrajectory } from '../../src/doors/view/static-shape.ts'
import type { TokenPage } from '../../src/doors/view/trajectory-shapes.ts'
import type { SideRequest, Source } from './source.ts'

/** The data in the page itself, unpacked when it is asked for. */
async function unpack<T>(id: string): Promise<T> {
  const text = document.getElementById(id)?.textContent ?? ''
  const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))
  return JSON.parse(await new Response(stream).text()) as T
}

/** Whether the page lies in a file with its runs inside. */
export function hasRunsInside(): boolean {
  return document.getElementById('espalier-runs') !== null
}

/** What lies in the file, found by name. */
class FileContents {
  readonly runs = unpack<readonly StaticRun[]>('espalier-runs')
  readonly #parcels = new Map<number, Promise<Readonly<Record<string, StaticGroup>>>>()

  async run(name: string): Promise<StaticRun> {
    const found = (await this.runs).find(({ run }) => run.name === name)
    if (!found) throw new Error(`This file holds no run called "${name}".`)
    return found
  }

  async group(name: string, id: string): Promise<StaticGroup> {
    const { parcels } = await this.run(name)
    const place = Object.hasOwn(parcels, id) ? parcels[id] : undefined
    if (place === undefined) {
      throw new Error(`The trajectories of group ${id} are not in this file, to keep it small.`)
    }
    const parcel = this.#parcels.get(place) ?? unpack(`espalier-${place}`)
    this.#parcels.set(place, parcel)
    return (await parcel)[id]!
  }

  async groupOfTree(name: string, tree: string): Promise<StaticGroup> {
    const { groups } = await this.run(name)
    if (Object.hasOwn(groups, tree)) return await this.group(name, groups[tree]!)
    throw new Error(`Nothing called "${tree}" is in this file; it may have been left out.`)
  }

  async trajectory(name: string, id: string): Promise<StaticTrajectory> {
    const { trajectories } = await this.groupOfTree(name, treeOf(id))
    const found = Object.hasOwn(trajectories, id) ? trajectories[id] : undefined
    if (!found) throw new Error(`This file holds no trajectory "${id}".`)
    return found
  }

  async side({
    run: name,
    step = null,
  }: Omit<SideRequest, 'step'> & { step?: number | null }): Promise<Side> {
    const { rows, run } = await this.run(name)
    const title = step === null ? name : `${name} at step ${step}`
    return { run: name, step, title, rows: rowsOfSide(rows, step), successAt: run.successAt }
  }

  /** Groups in which some message contains a text. */
  async hits(name: string, rows: readonly GroupRow[], text: string): Promise<ReadonlySet<string>> {
    const hits = new Set<string>()
    const needle = text.toLowerCase()
    for (const row of rows) {
      if (row.isLeftOut) continue
      const { trajectories } = await this.group(name, row.id)
      const says = Object.values(trajectories).some(({ answer }) => saysText(answer, needle))
      if (says) hits.add(row.id)
    }
    return hits
  }
}

const needsProgram = (what: string) => async (): Promise<never> => {
  throw new Error(
    `${what} needs the program: this is a file. espalier view RUN opens the run itself.`,
  )
}

/** Answers from the file that the page lies in. */
export function openFileSource(): Source {
  const file = new FileContents()
  return {
    isFile: true,
    runs: async () => (await file.runs).map(({ run }) => run),
    run: async name => (await file.run(name)).run,
    curves: async name => (await file.run(name)).curves,
    facets: async name => (await file.run(name)).facets,
    async groups(name, query, { offset, limit }) {
      const { rows } = await file.run(name)
      const hits = query.text === undefined ? undefined : await file.hits(name, rows, query.text)
      const found = queryGroups(rows, query, hits)
      const page = found.slice(offset, offset + limit)
      return { total: found.length, all: rows.length, offset, rows: page }
    },
    group: async (name, id) => (await file.group(name, id)).group,
    async trajectory(name, id) {
      const { images } = await file.groupOfTree(name, treeOf(id))
      return { ...(await file.trajectory(name, id)).answer, images }
    },
    tokens: async (name, id, { path, offset, limit }) =>
      cut((await file.trajectory(name, id)).tokens[path]!, offset, limit),
    tree: async (name, id) => (await file.groupOfTree(name, id)).trees[id]!,
    async parting(name, a, b) {
      const last = async (id: string): Promise<TokenPage> =>
        (await file.trajectory(name, id)).tokens.at(-1)!
      return partingOf({ id: a, page: await last(a) }, { id: b, page: await last(b) })
    },
    compare: async (before, after, stretch) =>
      compareSides(await file.side(before), await file.side(after), stretch),
    raw: async (name, id) => (await file.trajectory(name, id)).answer,
    watch: () => () => undefined,
    beginTry: needsProgram('A fork'),
    tryAnswer: needsProgram('A fork'),
    importFile: needsProgram('Reading another file'),
  }
}

/** A part of a path's tokens: each column is cut. */
function cut(page: TokenPage, offset: number, limit: number): TokenPage {
  const { path, total, images: shown, ...columns } = page
  const images = imageRunsOn(shown, offset, offset + limit)
  const pieces = Object.entries(columns).map(([name, column]) => [
    name,
    Array.isArray(column) ? column.slice(offset, offset + limit) : column,
  ])
  return { ...(Object.fromEntries(pieces) as TokenPage), path, total, offset, images }
}
