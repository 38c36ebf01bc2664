import { type FileHandle, rm, stat } from 'node:fs/promises'
import { appenderTo } from '../../base/core/files/appender.ts'
import { writeWhole } from '../../base/core/files/whole-file.ts'
import type { GroupId, TreeId } from '../../base/core/ids.ts'
import type { Usage } from '../../base/core/trajectory.ts'
import type { Tree } from '../../base/core/tree.ts'
import { encodeFrame, type Frame, prefixSize, toJson, type WrittenFrame } from './frame.ts'
import type { GroupRecord } from './group-record.ts'
import { type FramePlace, journalMagic, openToRead, readJournal } from './read-journal.ts'
import type { Pointer } from './segments/pointer.ts'

/** What a frame of a run's journal holds. */
export type JournalHeader =
  | { readonly kind: 'tree'; readonly tree: unknown }
  | Pointer
  | { readonly kind: 'group'; readonly group: GroupRecord }

/** Where a tree lies in its journal, and what it cost. */
export interface TreePlace extends FramePlace {
  readonly sampled: number
  readonly prompt: number
}

/** What a tree cost. */
export interface TreeCost {
  readonly id: TreeId
  readonly sampled: number
  readonly prompt: number
}

/** The contents of a journal, with its trees given by place only. */
export interface JournalContents {
  readonly trees: Map<TreeId, TreePlace>
  readonly records: Map<GroupId, GroupRecord>
}

/** The contents of a journal as it was read. */
export interface ReadContents extends JournalContents {
  /** The byte that its whole frames reach. */
  readonly end: number
  /** Sampled tokens of all trees, those of a tree that was made anew once more. */
  readonly sampled: number
}

/** A journal and the index beside it. */
export interface JournalPaths {
  readonly journal: string
  readonly index: string
}

/** The index of one part of the journal. */
interface IndexPart {
  readonly from: number
  readonly to: number
  /** Where its last frame lies, and its length and checksum, by which another journal is noticed. */
  readonly last: number
  readonly mark: string
  readonly trees: readonly NotedTree[]
  readonly groups: readonly GroupRecord[]
}

/** A part that is about to be written, with groups that are JSON. */
interface WrittenPart extends Omit<IndexPart, 'mark'> {
  readonly texts: readonly string[]
}

/** Where a tree lies, and what it cost. */
export type NotedTree = readonly [
  id: TreeId,
  offset: number,
  size: number,
  sampled: number,
  prompt: number,
]

/** Parts of at least this many bytes are indexed; shorter ones are read again as quickly. */
const worthNoting = 4 << 20

/**
 * Lists what a journal holds. An index beside it saves reading it whole; if that is missing, or belongs
 * to another journal, the journal is read and the index is rewritten.
 */
export async function readContents(
  paths: JournalPaths,
  least = worthNoting,
): Promise<ReadContents> {
  const contents = { trees: new Map(), records: new Map(), sampled: 0 }
  const parts = await readParts(paths)
  for (const part of parts) addPart(contents, part)
  const notes = makeNotes(paths, parts.at(-1)?.to ?? 0, least)
  for await (const { frame, place } of readJournal(paths.journal, notes.end)) {
    notes.add(frame, place)
    await notes.writeFull(part => addPart(contents, part))
  }
  await notes.write(part => addPart(contents, part))
  return { ...contents, end: notes.end }
}

/** Collects index entries for what is appended to a journal, and writes them beside it. */
export interface IndexNotes {
  /** The byte that the notes reach. */
  readonly end: number
  add(frame: Frame, place: FramePlace): void
  /** Notes a tree without its frame. */
  addTree(cost: TreeCost, place: FramePlace): void
  /** Notes trees that were noted by themselves and now lie behind this byte. */
  addTrees(trees: readonly NotedTree[], offset: number): void
  /** Notes a group from its record as JSON. */
  addGroup(record: string, place: FramePlace): void
  /** Writes the entries if there are enough, and forgets them; `onPart` gets them in any case. */
  write(onPart?: (part: Omit<IndexPart, 'mark'>) => void): Promise<void>
  /** Writes the entries once there are many, and forgets them; `onPart` gets them in any case. */
  writeFull(onPart?: (part: Omit<IndexPart, 'mark'>) => void): Promise<void>
}

/** Continues the index of a journal that is about to grow; undefined if the index is behind. */
export async function continueNotes(
  paths: JournalPaths,
  size: number,
  least = worthNoting,
): Promise<IndexNotes | undefined> {
  const end = (await readParts(paths)).at(-1)?.to ?? 0
  return Math.max(end, journalMagic.length) >= size ? makeNotes(paths, end, least) : undefined
}

/** Most trees and groups in memory before they are written; encoding more at once would hold the event loop. */
const fullNotes = 1024

function makeNotes(paths: JournalPaths, start: number, least: number): IndexNotes {
  let from = start
  let end = start
  let last = start
  let trees: NotedTree[] = []
  let groups: GroupRecord[] = []
  /** Groups as JSON, behind those before. */
  let texts: string[] = []
  /** The index as it was left here: one of another size has been written by somebody else. */
  let left: number | undefined
  /** Whether a part is missing, so that none can follow it: the next reader goes on from there. */
  let isBehind = false
  let writing = Promise.resolve()
  const append = async (part: WrittenPart): Promise<void> => {
    if (isBehind) return
    // The index can always be made again: a disk that refuses it costs time, not data.
    left = await writePart(paths, part, left).catch(() => undefined)
    isBehind = left === undefined
  }
  const write: IndexNotes['write'] = onPart => {
    if (end === from) return writing
    const part = { from, to: end, last, trees, groups, texts }
    onPart?.(part)
    ;[from, trees, groups, texts] = [end, [], [], []]
    // One after another: a part that found the one before it half written would take it for somebody else's.
    if (part.to - part.from >= least) writing = writing.then(() => append(part))
    return writing
  }
  const reach = ({ offset, size }: FramePlace): void => {
    if (offset < end) return
    last = offset
    end = offset + size
  }
  const addTree = ({ id, sampled, prompt }: TreeCost, place: FramePlace): void => {
    trees.push([id, place.offset, place.size, sampled, prompt])
    reach(place)
  }
  return {
    get end() {
      return end
    },
    addTree,
    addTrees(more, at) {
      for (const [id, offset, size, sampled, prompt] of more) {
        trees.push([id, at + offset, size, sampled, prompt])
        reach({ offset: at + offset, size })
      }
    },
    addGroup(record, place) {
      texts.push(record)
      reach(place)
    },
    add(frame, place) {
      const header = frame.header as JournalHeader
      if (header.kind === 'tree') return addTree(costOf(header.tree as StoredTree, frame), place)
      if (header.kind === 'pointer') return addTree(header, place)
      if (header.kind === 'group') groups.push(header.group)
      reach(place)
    },
    write,
    writeFull: async onPart => {
      // A short stretch is not written, and none behind it would be.
      if (trees.length + groups.length + texts.length >= fullNotes && end - from >= least)
        await write(onPart)
    },
  }
}

function addPart(
  contents: JournalContents & { sampled: number },
  part: Omit<IndexPart, 'mark'>,
): void {
  const { trees, records } = contents
  for (const [id, offset, size, sampled, prompt] of part.trees) {
    contents.sampled += sampled
    // For a tree that was written twice, the first cost counts.
    const cost = trees.get(id) ?? { sampled, prompt }
    trees.set(id, { offset, size, sampled: cost.sampled, prompt: cost.prompt })
  }
  for (const record of part.groups) records.set(record.id, record)
}

/** The parts that follow each other from the first byte on, if they are of this journal. */
async function readParts({ journal, index }: JournalPaths): Promise<readonly IndexPart[]> {
  const parts: IndexPart[] = []
  try {
    for await (const { frame } of readJournal(index)) {
      const part = frame.header as IndexPart
      // Two readers may have indexed the same part.
      if (part.from === (parts.at(-1)?.to ?? 0)) parts.push(part)
    }
    const last = parts.at(-1)
    if (!last || (await isOf(journal, last))) return parts
  } catch {
    // A damaged index is as good as none.
  }
  await rm(index, { force: true }).catch(() => {})
  return []
}

/**
 * Appends a part to the index, unless somebody else has indexed it meanwhile; returns the size of the
 * index. The index is read only if its size is not the known one.
 */
async function writePart(
  paths: JournalPaths,
  { texts, ...part }: WrittenPart,
  known: number | undefined,
): Promise<number | undefined> {
  if (known === undefined || known !== (await stat(paths.index)).size) {
    const end = (await readParts(paths)).at(-1)?.to ?? 0
    if (end !== part.from) return undefined
  }
  const mark = await markAt(paths.journal, part.last)
  const bytes = encodeFrame(partFrame({ ...part, mark }, texts))
  if (part.from > 0) await appenderTo(paths.index, { isLines: false }).append(bytes)
  else await writeWhole(paths.index, Buffer.concat([journalMagic, bytes]))
  return (await stat(paths.index)).size
}

/** The frame of a part; groups that are JSON are not read for it. */
function partFrame(part: IndexPart, texts: readonly string[]): Frame | WrittenFrame {
  if (texts.length === 0) return { header: part, arrays: [] }
  const groups = [...part.groups.map(toJson), ...texts].join()
  const others = toJson({ ...part, groups: undefined })
  const json = `${others.slice(0, -1)},"groups":[${groups}]}`
  return { json, leftOut: { texts: [], places: [] }, arrays: [] }
}

/** Whether a part tells of this journal: the same frame ends it, and the journal reaches that frame's end. */
async function isOf(journal: string, { last, mark, to }: IndexPart): Promise<boolean> {
  return (await markAt(journal, last)) === mark && (await stat(journal)).size >= to
}

/** Length and checksum of the frame at a place, in one word. */
async function markAt(journal: string, offset: number): Promise<string> {
  const handle: FileHandle | undefined = await openToRead(journal)
  if (!handle) return ''
  try {
    const bytes = Buffer.alloc(prefixSize)
    await handle.read(bytes, 0, prefixSize, offset)
    return bytes.toString('hex')
  } finally {
    await handle.close()
  }
}

/** The fields read of a tree that is not loaded. */
interface StoredTree {
  readonly header: { readonly id: TreeId }
  readonly nodes: readonly { readonly origin: string; readonly ids: number }[]
  readonly trajectories: readonly { readonly usage: Usage }[]
}

/** Trajectories of one tree share tokens, so that sampled ones are counted node by node. */
function costOf({ header, nodes, trajectories }: StoredTree, { arrays }: Frame): TreeCost {
  let sampled = 0
  let prompt = 0
  for (const { origin, ids } of nodes) {
    if (origin === 'sampled') sampled += arrays[ids]!.length
  }
  for (const { usage } of trajectories) prompt += usage.prompt
  return { id: header.id, sampled, prompt }
}

/** What a loaded tree cost. */
export function costOfTree({ id, nodes, trajectories }: Tree): TreeCost {
  let sampled = 0
  let prompt = 0
  for (const { segment } of nodes) {
    if (segment.origin === 'sampled') sampled += segment.ids.length
  }
  for (const { usage } of trajectories) prompt += usage.prompt
  return { id, sampled, prompt }
}
