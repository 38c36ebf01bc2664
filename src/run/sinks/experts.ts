import type { ExpertNumbers, RowExperts } from '../../base/core/experts.ts'
import type { Group } from '../../base/core/group.ts'
import type { MemberRow } from '../rows/row-record.ts'
import { type Fields, ReadError } from './fields.ts'
import { type Format, RefusedError } from './format.ts'

/** Numbers of experts as files hold them: base64 of bytes, row by row, little-endian. */
export interface WrittenExperts {
  /** Tokens, layers, experts per token. */
  readonly shape: readonly [number, number, number]
  readonly dtype: 'uint8' | 'uint16'
  readonly data: string
}

/** The experts of the first `tokens` tokens of a row, as files hold them. */
export function writtenExperts(
  { layers, top, data }: RowExperts,
  tokens = data.length / (layers * top),
): WrittenExperts {
  const bytes = tokens * layers * top * data.BYTES_PER_ELEMENT
  return {
    shape: [tokens, layers, top],
    dtype: data instanceof Uint16Array ? 'uint16' : 'uint8',
    data: Buffer.from(data.buffer, data.byteOffset, bytes).toString('base64'),
  }
}

/** The experts of a row's tokens as a neutral row holds them. */
export function readExperts(written: Fields, tokens: number): RowExperts {
  const [rows, layers, top] = written.list('shape') as readonly number[]
  const data = expertNumbers(written)
  const known = written.integer('known')
  const isWhole = rows === tokens && data.length === tokens * (layers ?? 0) * (top ?? 0)
  if (isWhole && known >= 0 && known <= tokens) return { layers: layers!, top: top!, data, known }
  throw new ReadError(`${written.place} should hold experts of ${tokens} tokens, as its shape says`)
}

function expertNumbers(written: Fields): ExpertNumbers {
  const bytes = Uint8Array.from(Buffer.from(written.text('data'), 'base64'))
  if (written.text('dtype') === 'uint8') return bytes
  if (written.text('dtype') === 'uint16' && bytes.length % 2 === 0)
    return new Uint16Array(bytes.buffer)
  throw new ReadError(`${written.place}: dtype should be uint8 or uint16`)
}

/** The experts of a row for replay; they must be known for all tokens up to the last trained one. */
export function replayedExperts(
  format: string,
  { row }: MemberRow,
  tokens?: number,
): WrittenExperts | undefined {
  const { experts, mask, trajectory } = row
  if (!experts) return undefined
  const needed = mask.lastIndexOf(1)
  if (experts.known >= needed) return writtenExperts(experts, tokens)
  throw new RefusedError(
    format,
    `the policy told the experts of ${experts.known} tokens of ${trajectory.id}, and ${needed} are looked back on`,
    'Use --to jsonl, or --without experts to train without replaying them.',
  )
}

/** Refuses to drop experts silently: the trainer would route tokens differently than when they were sampled. */
export function refuseExperts({ name, training, carries }: Format, group: Group): void {
  if (!training || carries.includes('routed experts')) return
  const routed = group.members.find(({ tree }) => tree.nodes.some(({ segment }) => segment.experts))
  if (!routed) return
  throw new RefusedError(
    name,
    `${routed.trajectory.id} was sampled through experts that the policy told, and its trainer would choose others`,
    'Use --to slime, verl, skyrl, jsonl or parquet, or --without experts to train without replaying them.',
  )
}

/** A group without its experts. */
export function withoutExperts(group: Group): Group {
  const trees = new Map([...group.members, ...group.unscored].map(({ tree }) => [tree, tree]))
  for (const tree of trees.keys()) {
    const nodes = tree.nodes.map(node => {
      if (!node.segment.experts) return node
      const { experts: _, ...segment } = node.segment
      return { ...node, segment: segment as typeof node.segment }
    })
    trees.set(tree, { ...tree, nodes })
  }
  const bare = <Member extends { readonly tree: MemberRow['tree'] }>(member: Member): Member => ({
    ...member,
    tree: trees.get(member.tree)!,
  })
  return { ...group, members: group.members.map(bare), unscored: group.unscored.map(bare) }
}
