// A reward of several parts: one that decides, one that helps a little, one that is only measured,
// and a judge, here a scripted speaker. Prints what each answer earns and why.
//   npx tsx examples/104-rewards.ts
import { environment, roll } from 'espalier'
import type { Speaker } from 'espalier/policies'
import { exactMatch, format, judge } from 'espalier/rewards'
import { scripted } from 'espalier/testing'
import { z } from 'zod'

// A real judge is a served model; this one dislikes long answers, and first forgets its score.
let asked = 0
const critic: Speaker = {
  name: 'critic',
  async say([question]) {
    asked++
    const isLong = String(question?.content).includes('I am sure')
    const content =
      asked === 1 ? 'I like it.' : `It is ${isLong ? 'wordy' : 'brief'}.\nScore: ${isLong ? 2 : 9}`
    return {
      message: { role: 'assistant', content },
      finish: 'stop',
      usage: { prompt: 0, sampled: 0 },
    }
  },
}

const quiz = environment({
  name: 'quiz',
  task: z.object({ question: z.string(), answer: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.question }] }),
  reward: {
    right: exactMatch(),
    boxed: { weight: 0.1, score: format({ kind: 'boxed' }) },
    brief: { weight: 0.2, score: judge({ speaker: critic, rubric: 'Full marks for brevity.' }) },
    characters: { weight: 0, score: ({ answer }) => answer.length },
  },
})

const question = 'What is the capital of Norway?'
const answers = {
  good: 'It is \\boxed{Oslo}',
  wordy: 'I am sure, as sure as one can be, that it must be \\boxed{Oslo}',
  bare: 'Oslo',
  hacked: '\\boxed{Oslo or Bergen or Trondheim}',
}
const tasks = Object.keys(answers).map(id => ({ id, question, answer: 'Oslo' }))
const policy = await scripted(Object.entries(answers).map(([task, text]) => ({ task, text })))

for await (const { task, members } of roll(quiz, tasks, { policy, group: 1, concurrency: 1 })) {
  for (const { reward } of members) {
    const parts = reward.parts.map(({ name, score, weight }) => `${name} ${score} × ${weight}`)
    console.log(`${task.padEnd(7)} ${reward.total.toFixed(2)} = ${parts.join(' + ')}`)
  }
}
console.log(`the judge was asked ${asked} times: a verdict that cannot be read is asked for again`)
