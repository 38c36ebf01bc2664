import { byRow, everyOne, type Kernel } from './kernel.ts'

/** Sums of squares, one per workgroup. */
export const squares: Kernel = {
  numbers: ['u count', 'u groups'],
  arrays: ['x', 'out='],
  code: byRow(`
  var total = 0.0;
  for (var at = group.x * 64u + lane; at < p.count; at += p.groups * 64u) {
    total += x[at] * x[at];
  }
  let whole = sum(total, lane);
  if (lane == 0u) { out[group.x] = whole; }`),
}

/** AdamW; the gradient starts anew. */
export const update: Kernel = {
  numbers: [
    ...(['u count', 'f rate', 'f decay', 'f beta1', 'f beta2', 'f epsilon', 'f scale'] as const),
    ...(['f correction1', 'f correction2'] as const),
  ],
  arrays: ['values=', 'gradient=', 'moment1=', 'moment2='],
  code: everyOne(`
    let slope = gradient[at] * p.scale;
    gradient[at] = 0.0;
    let first = p.beta1 * moment1[at] + (1.0 - p.beta1) * slope;
    let second = p.beta2 * moment2[at] + (1.0 - p.beta2) * slope * slope;
    moment1[at] = first;
    moment2[at] = second;
    let step = first * p.correction1 / (sqrt(second * p.correction2) + p.epsilon);
    values[at] -= p.rate * (step + p.decay * values[at]);`),
}
