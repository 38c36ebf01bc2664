import type { Renderer } from '@espalier/text'
import type { Unscored, Weighted } from '../../base/core/group.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { describeOutcome, describeUnscored } from '../../base/core/outcome.ts'
import { pathEnds, type Tree } from '../../base/core/tree.ts'
import { runModelOf } from '../../doors/view/run-model.ts'
import { openRenderer } from '../../run/settings/model-source.ts'
import { readManifest, standingOf } from '../../run/store/run-folder.ts'
import { openRunReader, type RunReader, type StoredGroup } from '../../run/store/store.ts'
import { readNotes, reportRun } from '../../run/watch/run-report.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { conversationLines } from '../conversation.ts'
import { groupLine, groupRecord, round } from '../group-line.ts'
import { reportLines } from '../report-lines.ts'
import { foldedLines, seenLines } from '../show/as-seen.ts'
import { choices, chooseGroups, isChosen } from '../show/choose-groups.ts'
import { findShown } from '../show/find-shown.ts'
import { overviewLines } from '../show/overview.ts'
import { showTokens } from '../show/show-tokens.ts'
import { treeLines } from '../show/tree-lines.ts'

/** Groups shown if no number is given. */
const usualLimit = 20

/** Reads runs, groups, trajectories and trees in the terminal. */
export const showCommand: Command = {
  name: 'show',
  usage: 'RUN [ID]',
  about:
    'Without an id: what the run is, what it came to, and its newest groups; with --step, --failed,\n' +
    '--reward or --task only the groups that are like that. With the id of a group or\n' +
    'a task, or a part of one that only one has: its trajectories, those of a tree as it branched. With\n' +
    'the id of a trajectory: the conversation, its reward and what became of it; with --as-seen what the\n' +
    'policy was really shown, turn by turn, where that was condensed; with --tokens every token, sampled\n' +
    'ones coloured by their log-probability. Works while the run is still being written.',
  examples: [
    'espalier show runs/0001',
    "espalier show runs/0001 --reward '<0.5' --limit 5",
    'espalier show runs/0001 7/0/0 --tokens',
    'espalier show runs/0001 7/0/0 --as-seen',
  ],
  settings: [],
  own: {
    report: { help: 'Show success, rewards, outcomes, costs and fidelity of the whole run' },
    tokens: { help: 'Show tokens instead of messages' },
    'as-seen': { help: 'Show what the policy saw before each turn, condensed as it was' },
    model: {
      help: "A model folder to write tokens as text with (default: the run's)",
      argument: 'DIR',
    },
    step: { help: 'Only groups of this step of training', argument: 'N' },
    failed: { help: 'Only groups with attempts that failed' },
    reward: { help: 'Only groups with such a reward: 1, <0.5, >=1', argument: 'REWARD' },
    task: { help: 'Only groups of the task with this id, or with this in it', argument: 'TEXT' },
    limit: { help: `How many of the newest groups (default: ${usualLimit})`, argument: 'N' },
  },
  positionalCount: [1, 2],
  run: runShow,
}

/** Flags that say how a trajectory is shown. */
const ofTrajectories = ['tokens', 'as-seen', 'model'] as const

async function runShow(invocation: Invocation): Promise<number> {
  const [run, id] = invocation.positionals
  refuseUnused(invocation)
  if (invocation.own.report !== undefined) return await showReport(run!, invocation)
  await using reader = await openRunReader(run!)
  if (id !== undefined) return await showOne(reader, id, invocation)
  if (invocation.json) await printRecords(reader, invocation)
  else await showRun(run!, reader, invocation)
  return 0
}

/** Refuses flags that would be ignored: they say something of what is not shown. */
function refuseUnused({ own, positionals: words }: Invocation): void {
  const given = (names: readonly string[]): string | undefined =>
    names.find(name => own[name] !== undefined)
  const ofGroups = given([...choices, 'limit'])
  const ofTokens = given(ofTrajectories)
  const [, id] = words
  if (own.report !== undefined && (id ?? ofGroups ?? ofTokens) !== undefined) {
    throw new MisuseError(
      `--report is of the whole run: leave out ${id ?? `--${ofGroups ?? ofTokens}`}`,
    )
  }
  if (id === undefined && ofTokens !== undefined) {
    throw new MisuseError(`--${ofTokens} changes nothing here: it needs the id of a trajectory`)
  }
  if (own.tokens !== undefined && own['as-seen'] !== undefined) {
    throw new MisuseError('--tokens and --as-seen are two views of a trajectory: give one of them')
  }
  if (own.tokens === undefined && own.model !== undefined) {
    throw new MisuseError('--model changes nothing here: it needs --tokens')
  }
  if (id !== undefined && ofGroups !== undefined) {
    throw new MisuseError(
      `--${ofGroups} changes nothing here: it chooses groups, and "${id}" is named`,
    )
  }
}

async function showReport(run: string, { terminal, json }: Invocation): Promise<number> {
  const report = await reportRun(run)
  const { problem } = await readNotes(run)
  if (problem !== undefined) terminal.tell(`${problem}; what only it says is left out`)
  const standing = await standingOf(run, report)
  if (json) terminal.print(JSON.stringify(report))
  else for (const line of reportLines(report, standing)) terminal.print(line)
  return 0
}

async function printRecords(reader: RunReader, { terminal, own }: Invocation): Promise<void> {
  const { groups } = await chooseGroups(reader, own, Number.POSITIVE_INFINITY)
  for (const group of groups) terminal.print(JSON.stringify(groupRecord(group)))
}

async function showRun(run: string, reader: RunReader, invocation: Invocation): Promise<void> {
  const { terminal, own } = invocation
  const { groups, fitting } = await chooseGroups(reader, own, usualLimit)
  if (!isChosen(own)) {
    const lines = await overviewLines(run, await readManifest(run), reader)
    for (const line of lines) terminal.print(line)
    if (groups.length > 0) terminal.print('')
  } else if (fitting === 0) terminal.print(`none of ${reader.groupCount} groups is like that`)
  for (const group of groups) terminal.print(groupLine(group))
  if (fitting > groups.length) {
    terminal.print(
      terminal.paint('dim', `the newest ${groups.length} of ${fitting} groups; --limit shows more`),
    )
  }
  terminal.tell(`next  ${commandLine('view', run)}`)
}

async function showOne(reader: RunReader, id: string, invocation: Invocation): Promise<number> {
  const shown = await findShown(reader, invocation.positionals[0]!, id)
  if (shown.kind === 'trajectory') await showTrajectory(shown.member, invocation)
  else {
    const unused = ofTrajectories.find(name => invocation.own[name] !== undefined)
    if (unused !== undefined) {
      throw new MisuseError(
        `--${unused} changes nothing here: it needs the id of a trajectory, and "${id}" is a ${shown.kind}`,
      )
    }
    showGroup(shown.stored, invocation, shown.kind === 'tree' ? shown.tree : undefined)
  }
  return 0
}

/** The trajectories of a group, or of one of its trees. */
function showGroup(
  { group }: StoredGroup,
  { terminal, json }: Invocation,
  tree: string | undefined,
): void {
  if (json) {
    terminal.print(JSON.stringify(groupRecord(group)))
    return
  }
  const members = [...group.members, ...group.unscored]
  const trees = new Map(members.map(member => [member.tree.id as string, member.tree]))
  for (const [id, each] of trees) {
    if (tree !== undefined && id !== tree) continue
    const grown = members.filter(member => member.tree.id === id)
    for (const line of linesOfTree(each, grown)) terminal.print(line)
  }
}

/** The trajectories of a tree: one on a line of its own, several as they branched. */
function linesOfTree(tree: Tree, members: readonly (Weighted | Unscored)[]): readonly string[] {
  const end = (member: Weighted | Unscored): string =>
    `${endLine(member)}  ${member.trajectory.turns.length} turns`
  if (members.length > 1) return [`${tree.id}`, ...treeLines(tree, members, end)]
  return members.map(member => `${member.trajectory.id}  ${end(member)}`)
}

/** How an attempt ended and what it was worth, on one line. */
function endLine(member: Weighted | Unscored): string {
  const { seat } = member.tree
  const whose = seat === undefined ? '' : `seat ${seat}  `
  return `${whose}${endingOf(member)}`
}

function endingOf(member: Weighted | Unscored): string {
  if (!('reward' in member)) return describeUnscored(member.trajectory.outcome, member.outcome)
  const { reward, advantage, dropped, trajectory } = member
  const parts = reward.parts.map(part => `${part.name} ${round(part.score)}`).join(', ')
  const note = dropped ? `  dropped by ${dropped.filter}: ${dropped.reason}` : ''
  return (
    `reward ${round(reward.total)}${parts ? ` (${parts})` : ''}  advantage ${advantage?.toFixed(3) ?? '–'}  ` +
    `${describeOutcome(trajectory.outcome)}${note}`
  )
}

async function showTrajectory(member: Weighted | Unscored, invocation: Invocation): Promise<void> {
  const { terminal, json, own } = invocation
  const { tree, trajectory } = member
  if (json) {
    terminal.print(JSON.stringify(trajectory))
    return
  }
  if (own.tokens === undefined) {
    const lines =
      own['as-seen'] === undefined
        ? [
            ...foldedLines(trajectory, terminal),
            ...conversationLines(trajectory.messages, terminal),
          ]
        : seenLines(tree, trajectory, terminal)
    for (const line of lines) terminal.print(line)
    terminal.print(endLine(member))
    if (trajectory.report !== undefined) {
      terminal.print(terminal.paint('dim', `report ${JSON.stringify(trajectory.report)}`))
    }
    return
  }
  const renderer = await rendererOf(invocation)
  const ends = pathEnds(tree, trajectory.end)
  const whose = tree.seat === undefined ? '' : `, seat ${tree.seat}`
  ends.forEach((end, index) => {
    if (ends.length > 1)
      terminal.print(terminal.paint('bold', `path ${index + 1} of ${ends.length}${whose}`))
    showTokens(tree, end, { terminal, renderer })
  })
}

/** Turns ids into text: by the named model, or the run's if its files are on this machine. */
async function rendererOf({
  own,
  positionals: words,
  terminal,
}: Invocation): Promise<Renderer | undefined> {
  if (own.model !== undefined) return await openRenderer(own.model)
  const model = runModelOf(await readManifest(words[0]!))
  try {
    return model === undefined ? undefined : await openRenderer(model, { offline: true })
  } catch (error) {
    terminal.tell(`tokens are shown as ids: ${(error as Error).message}`)
    return undefined
  }
}
