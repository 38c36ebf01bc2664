// npm run peers: the same work by Espalier and by what people would use instead, in turns.
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { benchedLines, runBenched } from '../bench/peers/benched.ts'
import type { Comparison, Spread } from '../bench/peers/line.ts'
import { peerLines } from '../bench/peers/lines.ts'
import { runLine } from '../bench/peers/run-line.ts'

const help = `npm run peers -- --python PATH [options]

Runs the same work with Espalier and with other systems, in turns on this machine, and prints a
table of medians with their spread. Ratios are those of single turns. Ends with 1 where the median
of one misses its target.

  --python PATH       a Python with the packages of bench/peers/requirements.txt
  --slime DIR         a checkout of slime, for its tau-bench agent
  --rllm DIR          a checkout of rLLM, for its workflow engine
  --vllm PATH         a Python with vLLM, for its tool parser
  --tau-bench DIR     a checkout of tau-bench
  --tau2-bench DIR    a checkout of tau2-bench
  --only TEXT         only lines whose name or peer contains it
  --turns N           how often each side takes its turn (default 5)
  --json              one JSON object per row`

const { values } = parseArgs({
  options: {
    python: { type: 'string' },
    slime: { type: 'string' },
    rllm: { type: 'string' },
    vllm: { type: 'string' },
    'tau-bench': { type: 'string' },
    'tau2-bench': { type: 'string' },
    only: { type: 'string', default: '' },
    turns: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const turns = Number(values.turns)
if (values.help || !values.python || !(Number.isInteger(turns) && turns >= 1)) {
  console.log(help)
  process.exit(values.help ? 0 : 2)
}
const { python } = values
const given = {
  ...(values.slime && { slime: values.slime }),
  ...(values.rllm && { rllm: values.rllm }),
  ...(values.vllm && { vllm: values.vllm }),
  ...(values['tau-bench'] && { tauBench: values['tau-bench'] }),
  ...(values['tau2-bench'] && { tau2Bench: values['tau2-bench'] }),
}

const wanted = (name: string, peers: readonly string[]): boolean =>
  [name, ...peers].some(text => text.toLowerCase().includes(values.only.toLowerCase()))

const number = (value: number): string =>
  value.toLocaleString('en', { maximumSignificantDigits: 3 })
const spread = ({ least, median, most }: Spread): string =>
  `${number(median)} (${number(least)} to ${number(most)})`

function print(rows: readonly Comparison[]): void {
  for (const row of rows) {
    if (values.json) {
      console.log(JSON.stringify(row))
      continue
    }
    const { measure, ours, theirs, ratio } = row
    const target = measure.target === undefined ? '' : ` of ${measure.target}`
    const verdict = measure.target === undefined ? '' : row.reached ? ' ✓' : ' ✗'
    console.log(
      `| ${row.line} | ${measure.figure}, ${measure.unit} | ${spread(ours)} | ${row.peer} ${row.version} | ${spread(theirs)} | ${spread(ratio)}${target}${verdict} |`,
    )
  }
}

const missed: Comparison[] = []
const missing: string[] = []
const note = (rows: readonly Comparison[]): void => {
  print(rows)
  missed.push(...rows.filter(({ reached }) => !reached))
}

if (!values.json) {
  console.log(`Node ${process.version}, ${availableParallelism()} cores, ${turns} turns each.\n`)
  console.log('| work | figure | ours | peer | theirs | how many times better |')
  console.log('| --- | --- | --- | --- | --- | --- |')
}
for (const line of await peerLines(given)) {
  const peers = line.peers.filter(({ name }) => wanted(line.name, [name]))
  if (peers.length === 0) continue
  const onTurn = (side: string, turn: number): void =>
    console.error(`${line.name}: ${side}, turn ${turn} of ${turns}`)
  const result = await runLine({ ...line, peers }, { python, turns, onTurn })
  note(result.comparisons)
  missing.push(...result.missing.map(({ peer, reason }) => `${line.name}, ${peer}: ${reason}`))
}
for (const benched of benchedLines(given)) {
  const lines = benched.lines.filter(({ line, peer }) => wanted(line, [peer]))
  if (lines.length === 0) continue
  if (benched.environment === undefined) missing.push(`${lines[0]!.line}: needs its checkout`)
  else note(runBenched({ ...benched, lines }, { python, turns }))
}
for (const text of missing) console.error(`not run: ${text}`)
for (const { line, peer, measure, ratio } of missed) {
  console.error(
    `missed: ${line}, ${measure.figure}: ${number(ratio.median)} times ${peer}, ${measure.target} wanted`,
  )
}
process.exitCode = missed.length > 0 ? 1 : 0
