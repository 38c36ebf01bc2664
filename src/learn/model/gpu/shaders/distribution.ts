// Kernels in WGSL. Every array is row-major and whole; where a kernel begins in one is among its numbers.

import { byRow, everyOne, type Kernel } from './kernel.ts'

/** The distribution of a row of logits: of its target, or of an id that is drawn. */
export const distribute: Kernel = {
  numbers: ['u vocabulary', 'u first'],
  arrays: ['rows:Row', 'logits=', 'found=:Found'],
  code: `
var<workgroup> counts: array<u32, 64>;
var<workgroup> chosen: u32;
${byRow(`
  let row = rows[p.first + group.x];
  let start = group.x * p.vocabulary;
  var own = -3.0e38;
  for (var at = lane; at < p.vocabulary; at += 64u) {
    let value = logits[start + at] * row.inverse;
    logits[start + at] = value;
    own = max(own, value);
  }
  let peak = largest(own, lane);
  var weights = 0.0;
  var moments = 0.0;
  for (var at = lane; at < p.vocabulary; at += 64u) {
    let distance = logits[start + at] - peak;
    weights += exp(distance);
    moments += exp(distance) * distance;
  }
  let total = sum(weights, lane);
  let moment = sum(moments, lane);
  if (row.goal >= 0.0) {
    var least = row.minP;
    if (row.topK > 0u && row.topK < p.vocabulary) {
      // Weights are positive, so that their bits are in their order: the k-th heaviest is found bit by bit.
      var bits = 0u;
      for (var bit = 0x40000000u; bit > 0u; bit /= 2u) {
        var count = 0.0;
        for (var at = lane; at < p.vocabulary; at += 64u) {
          if (bitcast<u32>(exp(logits[start + at] - peak)) >= (bits | bit)) { count += 1.0; }
        }
        if (u32(sum(count, lane)) >= row.topK) { bits |= bit; }
      }
      least = max(least, bitcast<f32>(bits));
    }
    if (row.topP < 1.0) {
      var kept = 0.0;
      for (var at = lane; at < p.vocabulary; at += 64u) {
        let weight = exp(logits[start + at] - peak);
        if (weight >= least) { kept += weight; }
      }
      let limit = sum(kept, lane) * row.topP;
      var bits = 0u;
      for (var bit = 0x40000000u; bit > 0u; bit /= 2u) {
        var mass = 0.0;
        for (var at = lane; at < p.vocabulary; at += 64u) {
          let weight = exp(logits[start + at] - peak);
          if (bitcast<u32>(weight) >= (bits | bit)) { mass += weight; }
        }
        if (sum(mass, lane) >= limit) { bits |= bit; }
      }
      least = max(least, bitcast<f32>(bits));
    }
    // Each lane has ids that follow each other: the first whose weights pass the goal is drawn.
    let each = (p.vocabulary + 63u) / 64u;
    let begin = lane * each;
    let end = min(begin + each, p.vocabulary);
    var own = 0.0;
    for (var at = begin; at < end; at++) {
      let weight = exp(logits[start + at] - peak);
      if (weight >= least) { own += weight; }
    }
    lanes[lane] = own;
    workgroupBarrier();
    if (lane == 0u) {
      var all = 0.0;
      for (var at = 0u; at < 64u; at++) { all += lanes[at]; }
      let goal = row.goal * all;
      var passed = 0.0;
      var last = 0u;
      var isFound = false;
      for (var part = 0u; part < 64u && !isFound; part++) {
        if (lanes[part] == 0.0) { continue; }
        if (passed + lanes[part] <= goal) {
          passed += lanes[part];
          last = min((part + 1u) * each, p.vocabulary) - 1u;
          continue;
        }
        for (var at = part * each; at < min((part + 1u) * each, p.vocabulary); at++) {
          let weight = exp(logits[start + at] - peak);
          if (weight < least) { continue; }
          passed += weight;
          last = at;
          if (passed > goal) { isFound = true; break; }
        }
        isFound = true;
      }
      chosen = last;
    }
    workgroupBarrier();
  } else if (row.wanted < 0) {
    var best = p.vocabulary;
    for (var at = lane; at < p.vocabulary; at += 64u) {
      if (logits[start + at] == peak) { best = min(best, at); }
    }
    counts[lane] = best;
    workgroupBarrier();
    if (lane == 0u) {
      for (var at = 1u; at < 64u; at++) { best = min(best, counts[at]); }
      chosen = best;
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    let id = select(chosen, u32(row.wanted), row.wanted >= 0);
    let whole = log(total);
    found[p.first + group.x] =
      Found(id, logits[start + id] - peak - whole, whole - moment / total, peak + whole);
  }`)}`,
}

/** The gradient of logits, in their place: (g (δ − p) − h p (log p + H)) / T. */
export const distributeBack: Kernel = {
  numbers: ['u count', 'u vocabulary', 'u first'],
  arrays: ['rows:Row', 'found:Found', 'slopes:vec2f', 'logits='],
  code: everyOne(`
    let row = p.first + at / p.vocabulary;
    let slope = slopes[row] * rows[row].inverse;
    let logprob = logits[at] - found[row].sum;
    var value = -exp(logprob) * (slope.x + slope.y * (logprob + found[row].entropy));
    if (at % p.vocabulary == found[row].id) { value += slope.x; }
    logits[at] = value;`),
}
