import type { Answering } from '../../../base/core/call.ts'
import type { GroupWork, Work } from '../elsewhere.ts'
import type { Served, ServedRun } from '../served/served-run.ts'
import { type MakeOrder, Maker } from './maker.ts'
import {
  type AnsweringGroup,
  type Asking,
  answerMade,
  answerNotMade,
  type RollThread,
} from './thread.ts'

/** The thread that calls this one, as one of a crew: it makes attempts of a run that is open here. */
export function openHere(run: ServedRun, width: number): RollThread {
  const asked = new Map<number, Asking>()
  const questions = {
    question: (id: number) => asked.get(id),
    settle(id: number) {
      const question = asked.get(id)
      asked.delete(id)
      return question
    },
  }
  const maker = new Maker(Promise.resolve(run), {
    width,
    post: batch => answerMade(questions, batch),
    send: news => answerNotMade(questions, news),
  })
  let next = 0
  const order = (asking: unknown, toOrder: (id: number) => MakeOrder): (() => void) => {
    const id = next++
    asked.set(id, asking as Asking)
    maker.follow(toOrder(id))
    return () => {
      if (questions.settle(id)) maker.withdraw(id)
    }
  }
  return {
    ready: Promise.resolve(),
    make: (work: Work, making: string, answering: Answering<Served>) =>
      order(answering, id => ({ kind: 'make', id, making, work })),
    makeGroup: (work: GroupWork, making: string, answering: AnsweringGroup) =>
      order(answering, id => ({ kind: 'make-group', id, making, work, shared: work })),
    pause: () => new Promise(resolve => run.pause(async () => resolve())),
    resume: ({ version, weights }) => run.resume({ version, weights: async () => weights }),
    async close() {},
  }
}
