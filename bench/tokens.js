// The peer of bench/tokens, and GPT-2's vocabulary in the form that Belfry reads, both from npm's `tiktoken`.
// usage: node tokens.js write FILE          GPT-2's tokenizer.json
//        node tokens.js encode TEXT FILE    tokens as uint16, and the MB a second of processor time
//        node tokens.js mix WORDS FILE      10 MB of the words of a text, in random order, broken and joined at random
'use strict';
const fs = require('fs');
const path = require('path');
const folder = path.dirname(require.resolve('tiktoken'));

// A byte is written as the character that stands for it (GPT-2's bytes_to_unicode).
function characters() {
    const plain = (b) => (b > 32 && b < 127) || (b > 160 && b < 256 && b !== 173);
    let free = 256;
    return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(plain(b) ? b : free++));
}

// Tokens in their order; each is a string with a character for a byte.
function readTokens() {
    const tokens = [];
    for (const line of require(path.join(folder, 'encoders/gpt2.cjs')).bpe_ranks.split('\n')) {
        const [kind, first, ...texts] = line.split(' ');
        if (kind !== '!') continue;
        texts.forEach((text, i) => { tokens[Number(first) + i] = Buffer.from(text, 'base64').toString('latin1'); });
    }
    return tokens;
}

// The two parts that a token was merged from: what remains of its bytes after all earlier merges.
function partsOf(token, ranks) {
    const parts = [...token];
    while (parts.length > 2) {
        let best = -1, rank = ranks.get(token);
        for (let i = 0; i + 1 < parts.length; i++) {
            const merged = ranks.get(parts[i] + parts[i + 1]);
            if (merged !== undefined && merged < rank) [best, rank] = [i, merged];
        }
        parts.splice(best, 2, parts[best] + parts[best + 1]);
    }
    return parts;
}

function write(file) {
    const shown = characters(), tokens = readTokens();
    const show = (text) => [...Buffer.from(text, 'latin1')].map((b) => shown[b]).join('');
    const ranks = new Map(tokens.map((token, rank) => [token, rank]));
    const vocab = Object.fromEntries(tokens.map((token, rank) => [show(token), rank]));
    const merges = tokens.filter((token) => token.length > 1).map((token) => partsOf(token, ranks).map(show).join(' '));
    const level = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
    fs.writeFileSync(file, JSON.stringify({
        version: '1.0', normalizer: null, pre_tokenizer: level, post_processor: null, decoder: { type: 'ByteLevel' },
        added_tokens: [{ id: tokens.length, content: '<|endoftext|>', special: true }],
        model: { type: 'BPE', vocab, merges },
    }));
}

function encode(file, out) {
    const text = fs.readFileSync(file, 'utf8');
    const encoder = require('tiktoken').get_encoding('gpt2');
    const before = process.cpuUsage();
    const tokens = encoder.encode(text, [], []);
    const used = process.cpuUsage(before);
    fs.writeFileSync(out, Buffer.from(Uint16Array.from(tokens).buffer));
    console.log(Buffer.byteLength(text) / (used.user + used.system));
}

function mix(file, out) {
    const joints = [' ', ' ', ' ', '', '  ', '\n', '\n\n', '\t', '. ', ', ', '-', "'s ", '\u00a0', '\u3000', ' \u200d', '12', '³ ', '🇩🇪'];
    const words = fs.readFileSync(file, 'utf8').split(/\s+/u), parts = [];
    let state = 1, bytes = 0;
    const draw = (most) => (state = (state * 1103515245 + 12345) % 2147483648) % 65536 % most;
    while (bytes < 1e7) {
        const characters = [...words[draw(words.length)]];
        const text = characters.slice(0, 1 + draw(characters.length + 3)).join('') + joints[draw(joints.length)];
        parts.push(text);
        bytes += Buffer.byteLength(text);
    }
    fs.writeFileSync(out, parts.join(''));
}

const [verb, ...files] = process.argv.slice(2);
({ write, encode, mix })[verb](...files);
