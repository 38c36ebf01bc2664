import { deflateRawSync } from 'node:zlib'
import { openOutputFile } from '../../run/exchange/output-file.ts'
import type { GroupRow } from './answers.ts'
import type { Library } from './library.ts'
import { inlinePage, readPage } from './page-files.ts'
import type { StaticGroup, StaticRun, StaticTrajectory } from './static-shape.ts'
import type { TreeAnswer } from './trajectory-shapes.ts'
import type { ViewedRun } from './viewed-run.ts'

/** What was written. */
export interface StaticWritten {
  readonly bytes: number
  readonly groups: number
  /** Groups that are listed without their trajectories. */
  readonly leftOut: number
}

/** Writes the page and the runs of a library into one file. */
export async function writeStatic(
  library: Library,
  file: string,
  { bytes }: { readonly bytes: number },
): Promise<StaticWritten> {
  const page = readPage()
  const parcels: string[] = []
  const runs: StaticRun[] = []
  let groups = 0
  let leftOut = 0
  const share = bytes / Math.max(1, library.names.length)
  for (const name of library.names) {
    const run = await library.open(name)
    await run.looked()
    const packed = await packRun(run, { most: share, parcels })
    runs.push(packed.static)
    groups += packed.groups
    leftOut += packed.leftOut
  }
  const html = inlinePage(page, dataBlocks(runs, parcels))
  const written = Buffer.from(html)
  const output = await openOutputFile(file, 'whole')
  await output.write(written)
  await output.close()
  return { bytes: written.length, groups, leftOut }
}

/**
 * Data that a browser cannot run: base64 has no character that could end the element, and its type is
 * not a script's.
 */
function dataBlocks(runs: readonly StaticRun[], parcels: readonly string[]): string {
  const block = (id: string, content: string): string =>
    `<script type="application/octet-stream" id="${id}">${content}</script>`
  return [
    block('espalier-runs', pack(runs)),
    ...parcels.map((each, index) => block(`espalier-${index}`, each)),
  ].join('\n')
}

function pack(value: unknown): string {
  return deflateRawSync(Buffer.from(JSON.stringify(value))).toString('base64')
}

interface Packing {
  readonly most: number
  readonly parcels: string[]
}

const groupsPerParcel = 8

/** Packs a run; if not all of it fits, groups are taken evenly from its whole course. */
async function packRun(
  run: ViewedRun,
  { most, parcels }: Packing,
): Promise<{ static: StaticRun; groups: number; leftOut: number }> {
  const rows = run.rows()
  const places = new Map<string, number>()
  const groups = new Map<string, string>()
  const waiting = batches(spread(rows), groupsPerParcel)
  // Images take half of the room at most, so that groups are not left out for them.
  const images = most / 2 / Math.min(groupsPerParcel, rows.length)
  for (let room = most; waiting.length > 0; ) {
    const batch = waiting.shift()!
    // One after another: all pages of a group are made of what was read of it once.
    const contents: [string, StaticGroup][] = []
    for (const { id } of batch) contents.push([id, await packGroup(run, { id, images })])
    const parcel = pack(Object.fromEntries(contents))
    if (parcel.length > room) {
      if (batch.length === 1) break
      // A part of it may fit.
      waiting.unshift(...batches(batch, Math.ceil(batch.length / 2)))
      continue
    }
    room -= parcel.length
    for (const [id, { trees }] of contents) {
      places.set(id, parcels.length)
      for (const tree of Object.keys(trees)) groups.set(tree, id)
    }
    parcels.push(parcel)
  }
  const marked = rows.map(row => (places.has(row.id) ? row : { ...row, isLeftOut: true }))
  return {
    static: {
      run: await run.answer(false),
      curves: run.curves(),
      facets: run.facets(),
      rows: marked,
      parcels: Object.fromEntries(places),
      groups: Object.fromEntries(groups),
    },
    groups: places.size,
    leftOut: rows.length - places.size,
  }
}

/** The rows in bit-reversed order, so that every prefix of the list is spread evenly over the run. */
function spread(rows: readonly GroupRow[]): readonly GroupRow[] {
  const bits = Math.ceil(Math.log2(Math.max(2, rows.length)))
  const reversed = (place: number): number => {
    let result = 0
    for (let bit = 0; bit < bits; bit++) result = result * 2 + ((place >> bit) & 1)
    return result
  }
  return rows
    .map((row, place) => ({ row, key: reversed(place) }))
    .sort((a, b) => a.key - b.key)
    .map(({ row }) => row)
}

function batches<T>(items: readonly T[], size: number): (readonly T[])[] {
  const all: (readonly T[])[] = []
  for (let at = 0; at < items.length; at += size) all.push(items.slice(at, at + size))
  return all
}

/** A group with at most so many characters of images; its members share those that several saw. */
async function packGroup(
  run: ViewedRun,
  { id, images: room }: { readonly id: string; readonly images: number },
): Promise<StaticGroup> {
  const group = await run.group(id)
  const images: Record<string, string> = {}
  let left = room
  const trajectories = new Map<string, StaticTrajectory>()
  const trees = new Map<string, TreeAnswer>()
  for (const member of group.members) {
    const { images: seen, ...answer } = await run.trajectory(member.id)
    for (const [address, image] of Object.entries(seen)) {
      if (address in images || image.length > left) continue
      images[address] = image
      left -= image.length
    }
    const whole = { offset: 0, limit: Number.POSITIVE_INFINITY }
    const tokens = await Promise.all(
      answer.paths.map((_, path) => run.tokens(member.id, { path, ...whole })),
    )
    trajectories.set(member.id, { answer, tokens })
    if (!trees.has(member.tree)) trees.set(member.tree, await run.tree(member.tree))
  }
  return {
    group,
    images,
    trajectories: Object.fromEntries(trajectories),
    trees: Object.fromEntries(trees),
  }
}
