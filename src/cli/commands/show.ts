import { describeOutcome } from '../../core/outcome.ts'
import type { Renderer } from '../../core/renderer.ts'
import type { Trajectory } from '../../core/trajectory.ts'
import { type Place, pathEnds, pathTo, type Tree } from '../../core/tree.ts'
import { openRenderer } from '../../settings/model-source.ts'
import { readManifest } from '../../store/run-folder.ts'
import { groupOf, openRunReader, type RunReader, type StoredGroup } from '../../store/store.ts'
import { reportRun } from '../../watch/run-report.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { conversationLines } from '../conversation.ts'
import { groupLine, groupRecord } from '../group-line.ts'
import { reportLines } from '../report-lines.ts'
import type { Terminal } from '../terminal.ts'

/** Reads runs, groups, trajectories and trees in the terminal. */
export const showCommand: Command = {
  name: 'show',
  summary: 'Read a run, a group or a trajectory',
  usage: 'RUN [ID]',
  about:
    'Without an id: the groups of a run. With the id of a group: its trajectories. With the id of a\n' +
    'trajectory: the conversation; with --tokens every token, sampled ones coloured by their\n' +
    'log-probability; with --report what the run came to. Works while it is still being written.',
  examples: [
    'espalier show runs/0001',
    'espalier show runs/0001 7/0/0',
    'espalier show runs/0001 7/0/0 --tokens --model DIR',
  ],
  settings: [],
  own: {
    report: { help: 'Show success, rewards, outcomes, costs and fidelity of the whole run' },
    tokens: { help: 'Show tokens instead of messages' },
    model: { help: 'A model folder to write tokens as text with', argument: 'DIR' },
  },
  isCommon: true,
  words: [1, 2],
  run: runShow,
}

async function runShow(invocation: Invocation): Promise<number> {
  const [run, id] = invocation.words
  if (invocation.own.report !== undefined) return await showReport(run!, invocation)
  const manifest = await readManifest(run!)
  const reader = await openRunReader(run!)
  try {
    if (id === undefined) {
      if (!invocation.json) {
        const { config, kind, status } = manifest
        invocation.terminal.print(
          `${kind} ${status}  environment ${config.environment ?? '–'}  policy ${config.policy ?? '–'}  groups ${reader.groupCount}  trees ${reader.treeCount}`,
        )
      }
      await showGroups(reader, invocation)
      invocation.terminal.tell(`next  espalier view ${run}`)
      return 0
    }
    return await showOne(reader, id, invocation)
  } finally {
    await reader[Symbol.asyncDispose]()
  }
}

async function showReport(run: string, { terminal, json }: Invocation): Promise<number> {
  const report = await reportRun(run)
  if (json) terminal.print(JSON.stringify(report))
  else for (const line of reportLines(report)) terminal.print(line)
  return 0
}

async function showGroups(reader: RunReader, { terminal, json }: Invocation): Promise<void> {
  for await (const { group } of reader.groups()) {
    terminal.print(json ? JSON.stringify(groupRecord(group)) : groupLine(group))
  }
}

async function showOne(reader: RunReader, id: string, invocation: Invocation): Promise<number> {
  const whole = await reader.group(id)
  if (whole) return showGroup(whole, invocation)
  // A trajectory is GROUP/MEMBER/NUMBER.
  const { group } = (await reader.group(groupOf(groupOf(id)))) ?? {}
  const member = [...(group?.members ?? []), ...(group?.unscored ?? [])].find(
    ({ trajectory }) => trajectory.id === id,
  )
  if (member) return await showTrajectory(member.tree, member.trajectory, invocation)
  throw new MisuseError(
    `no group or trajectory "${id}" in this run; \`espalier show RUN\` lists groups`,
  )
}

function showGroup({ group }: StoredGroup, { terminal, json }: Invocation): number {
  if (json) {
    terminal.print(JSON.stringify(groupRecord(group)))
    return 0
  }
  for (const { trajectory, reward, advantage, dropped } of group.members) {
    const parts = reward.parts.map(part => `${part.name} ${part.score}`).join(', ')
    const note = dropped ? `  dropped by ${dropped.filter}: ${dropped.reason}` : ''
    terminal.print(
      `${trajectory.id}  reward ${reward.total} (${parts})  advantage ${advantage?.toFixed(3) ?? '–'}  ` +
        `${describeOutcome(trajectory.outcome)}  ${trajectory.turns.length} turns${note}`,
    )
  }
  for (const { trajectory, outcome } of group.unscored) {
    terminal.print(`${trajectory.id}  ${describeOutcome(outcome)}`)
  }
  return 0
}

async function showTrajectory(
  tree: Tree,
  trajectory: Trajectory,
  invocation: Invocation,
): Promise<number> {
  const { terminal, json, own } = invocation
  if (json) terminal.print(JSON.stringify(trajectory))
  else if (own.tokens === undefined) {
    for (const line of conversationLines(trajectory.messages, terminal)) terminal.print(line)
    terminal.print(describeOutcome(trajectory.outcome))
  } else {
    const renderer = own.model ? await openRenderer(own.model) : undefined
    const ends = pathEnds(tree, trajectory.end)
    ends.forEach((end, index) => {
      if (ends.length > 1)
        terminal.print(terminal.paint('bold', `path ${index + 1} of ${ends.length}`))
      showTokens(tree, end, { terminal, renderer })
    })
  }
  return 0
}

function showTokens(
  tree: Tree,
  end: Place,
  { terminal, renderer }: { terminal: Terminal; renderer: Renderer | undefined },
): void {
  for (const { node, start, length } of pathTo(tree, end)) {
    const { segment } = tree.nodes[node]!
    const ids = segment.ids.subarray(0, length)
    const version = segment.origin === 'sampled' ? `  version ${segment.version.from}` : ''
    terminal.print(
      terminal.paint('dim', `${segment.origin} [${start}, ${start + length})${version}`),
    )
    const words = [...ids].map((id, index) => {
      const text = renderer
        ? JSON.stringify(renderer.decode(Int32Array.of(id))).slice(1, -1)
        : String(id)
      if (segment.origin !== 'sampled') return text
      return terminal.paint(colourOf(segment.logprobs?.[index]), text)
    })
    terminal.print(words.join(renderer ? '' : ' '))
  }
}

/** Sure tokens are green, surprising ones red. */
function colourOf(logprob: number | undefined): 'green' | 'yellow' | 'red' | 'cyan' {
  if (logprob === undefined) return 'cyan'
  if (logprob > -0.5) return 'green'
  return logprob > -2 ? 'yellow' : 'red'
}
