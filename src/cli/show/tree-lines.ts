import { type Message, textOf } from '@espalier/text'
import type { Unscored, Weighted } from '../../base/core/group.ts'
import type { Trajectory, Turn } from '../../base/core/trajectory.ts'
import { pathEnds, pathTo, type Tree } from '../../base/core/tree.ts'

type Member = Weighted | Unscored

/** A part of a tree that some attempts share: what was said in it, and what became of each after it. */
interface Branch {
  readonly members: readonly Member[]
  readonly said: readonly string[]
  readonly branches: readonly Branch[]
}

/** A tree as it branched, the turns beside its branches, and at each leaf how that attempt ended. */
export function treeLines(
  tree: Tree,
  members: readonly Member[],
  endOf: (member: Member) => string,
): readonly string[] {
  const nodes = new Map(members.map(member => [member, nodesOf(tree, member.trajectory)]))
  const grow = (shared: readonly Member[], from: number, shownTurns: number): Branch => {
    const paths = shared.map(member => nodes.get(member)!)
    const common = commonLength(paths, from)
    const turns = sharedTurns(shared)
    const said = turns
      .slice(shownTurns)
      .map((turn, index) => turnLine(shared[0]!, turn, shownTurns + index))
    const parts = shared.length === 1 ? [] : partsBy(shared, each => nodes.get(each)![common])
    const branches = parts.flatMap(part =>
      // Attempts that took the same path to its end differ in nothing that could branch.
      part.length === shared.length
        ? part.map(each => leafOf(each, turns.length))
        : [grow(part, common, turns.length)],
    )
    // Attempts may part within a turn, after its first tokens: then they share no further turn.
    const shownPart = from === 0 ? 'the opening' : `within turn ${turns.length + 1}`
    const hasWords = said.length > 0 || branches.length === 0
    return { members: shared, said: hasWords ? said : [shownPart], branches }
  }
  return draw(grow(members, 0, 0), endOf)
}

/** Attempts that go on with the same node, in the order of the first of each. */
function partsBy(
  members: readonly Member[],
  nodeOf: (member: Member) => number | undefined,
): readonly (readonly Member[])[] {
  const nodes = [...new Set(members.map(nodeOf))]
  return nodes.map(node => members.filter(member => nodeOf(member) === node))
}

function leafOf(member: Member, shownTurns: number): Branch {
  const said = member.trajectory.turns
    .slice(shownTurns)
    .map((turn, index) => turnLine(member, turn, shownTurns + index))
  return { members: [member], said, branches: [] }
}

/** The nodes that an attempt went through, those of paths that were rewritten included. */
function nodesOf(tree: Tree, { end }: Trajectory): readonly number[] {
  const all = pathEnds(tree, end).flatMap(each => pathTo(tree, each).map(({ node }) => node))
  return [...new Set(all)]
}

function commonLength(paths: readonly (readonly number[])[], from: number): number {
  let length = from
  const [first] = paths
  while (
    first![length] !== undefined &&
    paths.every(path => path[length] === first![length] && path.length > length)
  ) {
    length++
  }
  return length
}

/** The first turns that all of these attempts have in common, to the token. */
function sharedTurns(members: readonly Member[]): readonly Turn[] {
  const [first, ...others] = members.map(({ trajectory }) => trajectory.turns)
  const end = first!.findIndex((turn, index) =>
    others.some(turns => {
      const other = turns[index]?.end
      return other?.node !== turn.end.node || other.offset !== turn.end.offset
    }),
  )
  return end < 0 ? first! : first!.slice(0, end)
}

/** As much of a turn as says which one it was. */
const width = 64

function turnLine({ trajectory }: Member, turn: Turn, index: number): string {
  const said = trajectory.messages[turn.messages]
  const line = said === undefined ? '' : wordsOf(said).replace(/\s+/g, ' ').trim()
  const points = [...line]
  const text = points.length > width ? `${points.slice(0, width - 1).join('')}…` : line
  return `turn ${index + 1}  ${text}`
}

function wordsOf(message: Message): string {
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  const called = calls.map(({ function: { name, arguments: words } }) => `→ ${name}(${words})`)
  return [textOf(message.content), ...called].join(' ')
}

function draw(branch: Branch, endOf: (member: Member) => string): readonly string[] {
  const [member, ...others] = branch.members
  if (others.length === 0) {
    return [...branch.said, `■ ${member!.trajectory.id}  ${endOf(member!)}`]
  }
  const below = branch.branches.flatMap((each, index) => {
    const isLast = index === branch.branches.length - 1
    return draw(each, endOf).map((line, at) =>
      at === 0 ? `${isLast ? '└─' : '├─'} ${line}` : `${isLast ? '  ' : '│ '} ${line}`,
    )
  })
  return [...branch.said, ...below]
}
