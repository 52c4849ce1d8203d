//! Which rates a frame goes through.

use super::MinstrelHt;
use super::groups::Index;
use super::stats::frac;

impl MinstrelHt {
    /// What a rate carries, in units of 12,000 bytes a second; 0: it hardly ever arrives.
    pub(super) fn throughput(&self, index: Index) -> u64 {
        let probability = self.probability(index);
        if probability < frac(10, 100) {
            return 0;
        }
        // Collisions make the last tenth meaningless.
        let probability = u64::from(probability.min(frac(90, 100)));
        let nanos = 1_000 * self.overhead(index.group()) / self.average(index.group()) + self.duration(index);
        (100 * (probability * 1_000_000 / u64::from(nanos.max(1)))) >> 12
    }

    /// Takes the counters since the last update into the statistics.
    pub(super) fn fold(&mut self) {
        let average = !self.by_kinds();
        for (group, stats) in self.groups.iter().zip(&mut self.stats) {
            let mut faster = 0;
            for (rate, stats) in group.rates.iter().zip(stats).rev() {
                match rate {
                    Some(_) if average => stats.fold_average(),
                    Some(_) => stats.fold(&mut faster),
                    None => {}
                }
            }
        }
    }

    /// Chooses rates of most throughput and the most robust one.
    pub(super) fn select(&mut self) {
        let mut best = [self.groups[0].lowest(0); 4];
        for number in 0..self.groups.len() {
            let mut own = [self.groups[number].lowest(number); 4];
            for index in self.indexes(number).rev() {
                if self.throughput(index) > 0 {
                    self.place(&mut best, index);
                    self.place(&mut own, index);
                }
            }
            self.groups[number].max_tp = own;
        }
        self.max_tp = best;
        self.max_prob = self.groups[0].lowest(0);
        for number in 0..self.groups.len() {
            self.groups[number].max_prob = self.groups[number].lowest(number);
            for index in self.indexes(number) {
                self.consider_robust(index);
            }
        }
        self.reduce_streams();
    }

    /// Rates of a group, slowest first.
    fn indexes(&self, number: usize) -> impl DoubleEndedIterator<Item = Index> + use<> {
        let has = self.groups[number].rates.map(|rate| rate.is_some());
        (0..has.len()).filter(move |rate| has[*rate]).map(move |rate| Index::new(number, rate))
    }

    /// Into a list of four, by throughput and then by probability; of equals the later goes behind.
    fn place(&self, list: &mut [Index; 4], index: Index) {
        let key = |index| (self.throughput(index), self.probability(index));
        let own = key(index);
        let place = 4 - list.iter().rev().take_while(|other| own > key(**other)).count();
        if place < 4 {
            list.copy_within(place..3, place + 1);
            list[place] = index;
        }
    }

    /// Whether a rate is more robust than the most robust so far, overall and in its group.
    fn consider_robust(&mut self, index: Index) {
        let probability = self.probability(index);
        let fastest = self.max_tp[0];
        let (group, top) = (&self.groups[index.group()], &self.groups[fastest.group()]);
        if group.is_legacy && !top.is_legacy {
            return;
        }
        // What is faster than the best rate and arrives less often.
        if self.duration(fastest) > self.duration(index) && probability < self.probability(fastest) {
            return;
        }
        let good = probability > frac(75, 100);
        let better = |than: Index| {
            if good { self.throughput(index) > self.throughput(than) } else { probability > self.probability(than) }
        };
        let (overall, own) = (better(self.max_prob), better(group.max_prob));
        if overall {
            self.max_prob = index;
        }
        if own {
            self.groups[index.group()].max_prob = index;
        }
    }

    /// The most robust rate with fewer streams than the fastest one has, where there is one.
    fn reduce_streams(&mut self) {
        let streams = self.groups[self.max_tp[0].group()].streams;
        let mut best = 0;
        for group in self.groups.iter().filter(|group| group.streams < streams) {
            let throughput = self.throughput(group.max_prob);
            if throughput > best {
                (self.max_prob, best) = (group.max_prob, throughput);
            }
        }
    }
}
