import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { treeOf } from '../../../base/core/ids.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { decodeFrame } from '../../../run/store/frame.ts'
import type { GroupRecord } from '../../../run/store/group-record.ts'
import {
  type FramePlace,
  openToRead,
  type PlacedBytes,
  readBytes,
  readPlaces,
} from '../../../run/store/read-journal.ts'
import { readManifest } from '../../../run/store/run-folder.ts'
import { isPointer, type Pointer } from '../../../run/store/segments/pointer.ts'
import { type Segments, segmentsOf } from '../../../run/store/segments/segments.ts'
import { treeFromFrame } from '../../../run/store/tree-frame.ts'
import type { GroupRow, Progress } from '../answers.ts'
import { factsOf, type TreeFacts } from './facts.ts'
import { rowOf } from './group-row.ts'

/** The first bytes of a tree's frame, behind lengths and checksum: its id follows. */
const treeStart = Buffer.from('[{"kind":"tree","tree":{"header":{"id":"')
const headerStart = 12
const quote = 0x22
const backslash = 0x5c

/**
 * The index of a run's journal. First it reads the places of trees and the records of groups; then it
 * reads the trees, one after the other, and keeps a few numbers of each. Trees stay on disk.
 */
export class RunIndex implements AsyncDisposable {
  readonly path: string
  readonly #trees = new Map<string, FramePlace>()
  readonly #groups = new Map<string, GroupRecord>()
  readonly #groupOfTree = new Map<string, string>()
  readonly #facts = new Map<string, TreeFacts>()
  readonly #rows = new Map<string, GroupRow>()
  #ordered: readonly GroupRow[] | undefined
  #handle: FileHandle | undefined
  #segments: Promise<Segments> | undefined
  /** Up to where frames were placed, and up to where trees were looked into. */
  #placed = 0
  #looked = 0
  #trajectories = 0
  #version = 0
  #damage: string | undefined

  constructor(path: string) {
    this.path = path
  }

  get progress(): Progress {
    return {
      looked: this.#facts.size,
      trees: this.#trees.size,
      groups: this.#groups.size,
      trajectories: this.#trajectories,
      version: this.#version,
      ...(this.#damage !== undefined && { damage: this.#damage }),
    }
  }

  /** The byte that its whole frames reach. */
  get end(): number {
    return this.#placed
  }

  /** Reads the places of what was added since the last call. It stops at damage; what came before stays valid. */
  async refresh(): Promise<void> {
    this.#handle ??= await openToRead(this.path)
    if (!this.#handle || this.#damage !== undefined) return
    const { size } = await this.#handle.stat()
    if (size < this.#placed) this.#forget()
    try {
      for await (const { place, bytes, isTorn } of readPlaces(
        this.#handle,
        this.path,
        this.#placed,
      )) {
        if (isTorn) break
        this.#add(place, bytes)
        this.#placed = place.offset + place.size
      }
    } catch (error) {
      this.#damage = (error as Error).message
      this.#change()
    }
  }

  /** Reads trees whose place is known but not their contents; returns whether there were any. */
  async look(signal: AbortSignal): Promise<boolean> {
    if (this.#looked >= this.#placed) return false
    try {
      await this.#lookOn(signal)
    } catch (error) {
      // A whole frame may still not hold a valid tree; the rest of the run can be read.
      this.#damage ??= (error as Error).message
      this.#looked = this.#placed
      this.#change()
    }
    return true
  }

  /** Every group's row, in the run's own order. */
  rows(): readonly GroupRow[] {
    if (!this.#ordered) {
      for (const [id, record] of this.#groups) {
        if (!this.#rows.has(id))
          this.#rows.set(
            id,
            rowOf(record, tree => this.#facts.get(tree)),
          )
      }
      this.#ordered = [...this.#rows.values()].sort(
        (a, b) => (a.step ?? 0) - (b.step ?? 0) || a.order - b.order || (a.id < b.id ? -1 : 1),
      )
    }
    return this.#ordered
  }

  group(id: string): GroupRecord | undefined {
    return this.#groups.get(id)
  }

  groupOfTree(id: string): string | undefined {
    return this.#groupOfTree.get(id)
  }

  facts(tree: string): TreeFacts | undefined {
    return this.#facts.get(tree)
  }

  /** Reads a tree; nothing if there is none of that id. */
  async tree(id: string): Promise<Tree | undefined> {
    const place = this.#trees.get(id)
    if (!place || !this.#handle) return undefined
    const bytes = await this.#whole(await readBytes(this.#handle, place))
    const frame = decodeFrame(bytes, place.offset)
    const { header, arrays } = frame
    const tree = treeFromFrame({ header: (header as { tree: unknown }).tree, arrays })
    // What is shown of it must not wait until everything before it was looked through.
    if (!this.#facts.has(id)) this.#see(id, factsOf(frame))
    return tree
  }

  /** The frames of trees as they lie in the file, from a place on up to what is placed. */
  async *treeFrames(from: number): AsyncGenerator<{ id: string; bytes: Buffer; end: number }> {
    for await (const { place, bytes } of this.#framesFrom(from)) {
      const id = treeIdIn(bytes)
      const end = place.offset + place.size
      if (id !== undefined) yield { id, bytes: await this.#whole(bytes), end }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close()
    this.#handle = undefined
  }

  async #lookOn(signal: AbortSignal): Promise<void> {
    let lastYield = performance.now()
    for await (const { place, bytes } of this.#framesFrom(this.#looked)) {
      const id = treeIdIn(bytes)
      if (id !== undefined) {
        this.#see(id, factsOf(decodeFrame(await this.#whole(bytes), place.offset)))
      }
      this.#looked = place.offset + place.size
      if (signal.aborted) return
      // Yield, so that other requests are answered in between.
      if (performance.now() - lastYield < 8) continue
      await new Promise(resolve => setImmediate(resolve))
      lastYield = performance.now()
    }
  }

  /** The frame of a tree, from its segment if it lies in one. */
  async #whole(bytes: Buffer): Promise<Buffer> {
    if (!isPointer(bytes)) return bytes
    const folder = dirname(this.path)
    this.#segments ??= readManifest(folder).then(manifest => segmentsOf(folder, manifest))
    return await (await this.#segments).whole(bytes)
  }

  /** Frames that were placed: what lies behind them, damaged perhaps, is not read. */
  async *#framesFrom(from: number): AsyncGenerator<PlacedBytes> {
    const until = this.#placed
    if (!this.#handle || from >= until) return
    for await (const placed of readPlaces(this.#handle, this.path, from)) {
      yield placed
      if (placed.place.offset + placed.place.size >= until) return
    }
  }

  #add(place: FramePlace, bytes: Buffer): void {
    const id = treeIdIn(bytes)
    if (id !== undefined) this.#trees.set(id, place)
    else {
      const { header } = decodeFrame(bytes, place.offset)
      const { kind, group } = header as { kind: string; group: GroupRecord }
      if (kind === 'group') this.#addGroup(group)
    }
    this.#change()
  }

  #addGroup(group: GroupRecord): void {
    const count = ({ members, unscored }: GroupRecord): number => members.length + unscored.length
    const before = this.#groups.get(group.id)
    // The record itself is kept, not where it lies: it is what the table is made of.
    this.#groups.set(group.id, group)
    this.#trajectories += count(group) - (before ? count(before) : 0)
    for (const { trajectory } of [...group.members, ...group.unscored]) {
      this.#groupOfTree.set(treeOf(trajectory), group.id)
    }
    this.#rows.delete(group.id)
  }

  #see(tree: string, facts: TreeFacts): void {
    this.#facts.set(tree, facts)
    const group = this.#groupOfTree.get(tree)
    if (group !== undefined) this.#rows.delete(group)
    this.#change()
  }

  #change(): void {
    this.#version++
    this.#ordered = undefined
  }

  #forget(): void {
    for (const each of [this.#trees, this.#groups, this.#groupOfTree, this.#facts, this.#rows])
      each.clear()
    this.#placed = 0
    this.#looked = 0
    this.#trajectories = 0
    this.#change()
  }
}

/** The id of the tree that a frame holds, without reading the rest; nothing if it holds no tree. */
function treeIdIn(bytes: Buffer): string | undefined {
  if (isPointer(bytes)) return (decodeFrame(bytes, 0).header as Pointer).id
  const start = headerStart + treeStart.length
  if (bytes.compare(treeStart, 0, treeStart.length, headerStart, start) !== 0) return undefined
  let end = start
  while (end < bytes.length && bytes[end] !== quote) end += bytes[end] === backslash ? 2 : 1
  return JSON.parse(`"${bytes.toString('utf8', start, end)}"`) as string
}
