// Long inputs and long conversations, condensed. First a question over eight passages that are shown
// as numbered blocks: the policy gets back the two that it needs. Then a conversation of many turns
// in a small context, whose oldest turns are left out. Prints what was shown, recalled and trained.
//   npx tsx examples/202-condense.ts
import { environment, roll, tool } from 'espalier'
import { passages } from 'espalier/environments'
import { rowsOf } from 'espalier/store'
import { scripted } from 'espalier/testing'
import { z } from 'zod'

const call = (name: string, input: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`

// The script knows which passages answer the question, so it can ask for their blocks.
const quiz = passages()
const [task] = quiz.makeTasks!({ count: 1, seed: 4 })
const { question, answer, supporting, passages: all } = task!.data
const blocks = supporting.map(title => all.findIndex(each => each.title === title) + 1)
const reader = await scripted([
  ...blocks.map(block => call('recall', { block: block })),
  `It says so there. \\boxed{${answer[0]}}`,
])
const condense = 'keyword:boundary=blank-line'
for await (const { members } of roll(quiz, [task!.data], { policy: reader, group: 1, condense })) {
  for (const { trajectory, reward } of members) {
    console.log(`${question}\n`)
    console.log(String(trajectory.views?.[0]?.shown[1]?.content).split('\n\n')[2], '\n')
    for (const { kind, detail } of trajectory.events) console.log(`${kind.padEnd(10)} ${detail}`)
    console.log(`reward ${reward.total}\n`)
  }
}

// A book that is longer than the context of 1500 tokens; each page is about 100.
const book = environment({
  name: 'book',
  task: z.object({ pages: z.int() }),
  open({ data }) {
    let page = 0
    const turn = tool({
      inputSchema: z.object({}),
      execute: () => `Page ${++page}: ${'the story goes on, '.repeat(5)}and so forth.`,
    })
    const content = `Read all ${data.pages} pages, then say how many there were.`
    return { opening: [{ role: 'user', content }], tools: { turn }, report: () => ({ page }) }
  },
  reward: { all: ({ report, task: { data } }) => Number(report.page === data.pages) },
})
const patient = await scripted([...Array(14).fill(call('turn', {})), 'There were 14.'])
const limits = { context: 1500, turns: 20 }
const options = { policy: patient, group: 1, limits, condense: 'keep-last-turns' }
for await (const { members } of roll(book, [{ pages: 14 }], options)) {
  for (const { tree, trajectory, reward } of members) {
    for (const { kind, turn, detail } of trajectory.events) {
      if (kind === 'condensed') console.log(`before turn ${turn + 2}: ${detail}`)
    }
    const longest = Math.max(...patient.prompts.map(prompt => prompt.length))
    const rows = rowsOf(tree, { credits: [{ trajectory: trajectory.id, advantage: 1, weight: 1 }] })
    const trained = rows.map(row => row.mask.reduce((sum, bit) => sum + bit, 0))
    console.log(`reward ${reward.total}; the longest prompt had ${longest} tokens`)
    console.log(`${rows.length} rows train ${trained.join(' + ')} tokens, each of them once`)
  }
}
