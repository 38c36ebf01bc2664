// Kernels in WGSL. Every array is row-major and whole; where a kernel begins in one is among its numbers.

import { byRow, type Kernel } from './kernel.ts'

/** What attention reads of a token: where the key at a place of its path lies. */
const cellAt = `
fn cellAt(table: u32, place: u32) -> u32 {
  return (paths[table + (place >> p.shift)] << p.shift) + (place & ((1u << p.shift) - 1u));
}`

const attentionNumbers = [
  ...(['u heads', 'u keyHeads', 'u size', 'u shift', 'u window', 'f scale'] as const),
] as const

/** A head's mean of the values before a token, by how its query meets their keys; and the logarithm of the sum. */
export const attend: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'paths:u32', 'q', 'k', 'v', 'out=', 'stats=:vec2f'],
  code: `${cellAt}
var<workgroup> scores: array<f32, 64>;
${byRow(`
  let t = group.x;
  let token = tokens[t];
  let query = (t * p.heads + group.y) * p.size;
  let head = (group.y / (p.heads / p.keyHeads)) * p.size;
  let keys = p.keyHeads * p.size;
  let end = token.position + 1u;
  let begin = select(0u, end - min(end, p.window), p.window > 0u);
  var peak = -3.0e38;
  var total = 0.0;
  for (var at = lane; at < p.size; at += 64u) { out[query + at] = 0.0; }
  for (var first = begin; first < end; first += 64u) {
    var score = -3.0e38;
    if (first + lane < end) {
      let key = cellAt(token.path, first + lane) * keys + head;
      score = 0.0;
      for (var at = 0u; at < p.size; at++) { score += q[query + at] * k[key + at]; }
      score *= p.scale;
    }
    let higher = max(peak, largest(score, lane));
    let kept = exp(peak - higher);
    let share = select(0.0, exp(score - higher), first + lane < end);
    scores[lane] = share;
    total = total * kept + sum(share, lane);
    peak = higher;
    let some = min(64u, end - first);
    for (var at = lane; at < p.size; at += 64u) {
      var mean = out[query + at] * kept;
      for (var each = 0u; each < some; each++) {
        mean += scores[each] * v[cellAt(token.path, first + each) * keys + head + at];
      }
      out[query + at] = mean;
    }
    workgroupBarrier();
  }
  for (var at = lane; at < p.size; at += 64u) { out[query + at] /= total; }
  if (lane == 0u) { stats[t * p.heads + group.y].x = peak + log(total); }`)}`,
}

/** Products of rows of heads: what their softmax takes off the gradient. */
export const along: Kernel = {
  numbers: ['u size'],
  arrays: ['x', 'dx', 'stats=:vec2f'],
  code: byRow(`
  var total = 0.0;
  for (var at = lane; at < p.size; at += 64u) {
    total += x[index * p.size + at] * dx[index * p.size + at];
  }
  let whole = sum(total, lane);
  if (lane == 0u) { stats[index].y = whole; }`),
}

/** The gradient of a query. */
export const attendBackQueries: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'paths:u32', 'q', 'k', 'v', 'dy', 'stats:vec2f', 'dq='],
  code: `${cellAt}
var<workgroup> slopes: array<f32, 64>;
${byRow(`
  let t = group.x;
  let token = tokens[t];
  let row = t * p.heads + group.y;
  let query = row * p.size;
  let head = (group.y / (p.heads / p.keyHeads)) * p.size;
  let keys = p.keyHeads * p.size;
  let end = token.position + 1u;
  let begin = select(0u, end - min(end, p.window), p.window > 0u);
  for (var at = lane; at < p.size; at += 64u) { dq[query + at] = 0.0; }
  for (var first = begin; first < end; first += 64u) {
    var slope = 0.0;
    if (first + lane < end) {
      let key = cellAt(token.path, first + lane) * keys + head;
      var score = 0.0;
      var pull = 0.0;
      for (var at = 0u; at < p.size; at++) {
        score += q[query + at] * k[key + at];
        pull += dy[query + at] * v[key + at];
      }
      slope = exp(score * p.scale - stats[row].x) * (pull - stats[row].y) * p.scale;
    }
    slopes[lane] = slope;
    workgroupBarrier();
    let some = min(64u, end - first);
    for (var at = lane; at < p.size; at += 64u) {
      var value = dq[query + at];
      for (var each = 0u; each < some; each++) {
        value += slopes[each] * k[cellAt(token.path, first + each) * keys + head + at];
      }
      dq[query + at] = value;
    }
    workgroupBarrier();
  }`)}`,
}

/** The gradient of a key and a value: over what follows its token, which lies behind it without a gap. */
export const attendBackKeys: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'q', 'k', 'v', 'dy', 'stats:vec2f', 'dk=', 'dv='],
  code: `
var<workgroup> shares: array<f32, 64>;
var<workgroup> slopes: array<f32, 64>;
${byRow(`
  let j = group.x;
  let key = (j * p.keyHeads + group.y) * p.size;
  let each = p.heads / p.keyHeads;
  let end = tokens[j].end;
  for (var at = lane; at < p.size; at += 64u) { dk[key + at] = 0.0; dv[key + at] = 0.0; }
  let count = (end - j) * each;
  for (var first = 0u; first < count; first += 64u) {
    var share = 0.0;
    var slope = 0.0;
    let t = j + (first + lane) / each;
    let row = t * p.heads + group.y * each + (first + lane) % each;
    if (first + lane < count
      && (p.window == 0u || tokens[t].position - tokens[j].position < p.window)) {
      var score = 0.0;
      var pull = 0.0;
      for (var at = 0u; at < p.size; at++) {
        score += q[row * p.size + at] * k[key + at];
        pull += dy[row * p.size + at] * v[key + at];
      }
      share = exp(score * p.scale - stats[row].x);
      slope = share * (pull - stats[row].y) * p.scale;
    }
    shares[lane] = share;
    slopes[lane] = slope;
    workgroupBarrier();
    let some = min(64u, count - first);
    for (var at = lane; at < p.size; at += 64u) {
      var toKey = dk[key + at];
      var toValue = dv[key + at];
      for (var one = 0u; one < some; one++) {
        let start = ((j + (first + one) / each) * p.heads + group.y * each + (first + one) % each)
          * p.size + at;
        toKey += slopes[one] * q[start];
        toValue += shares[one] * dy[start];
      }
      dk[key + at] = toKey;
      dv[key + at] = toValue;
    }
    workgroupBarrier();
  }`)}`,
}
